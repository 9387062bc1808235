// error: PORT_HAS_TWO_KINDS<weights
#include "../graph/grpo.hpp"
#ifdef TWIN
struct report { static void run(state<weights>, out<advantages>) {} };
#else
struct report { static void run(in<weights>, out<advantages>) {} };
#endif
using g = weft::graph<weft::feed<prompts>, generate, report, policy_loss, sgd, weft::keep<loss>>;
int x = g::size;
