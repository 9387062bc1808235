// error: PORT_HAS_TWO_KINDS<rewards
#include "../graph/grpo.hpp"
struct room : weft::port<weft::f32, batch, seq> {};
#ifdef TWIN
struct score2 { static void run(in<tokens>, scratch<room>, out<rewards>) {} };
#else
struct score2 { static void run(in<tokens>, scratch<rewards>, out<rewards>) {} };
#endif
using g = weft::graph<weft::feed<prompts>, generate, score2, group_advantage, policy_loss, sgd, weft::keep<loss>>;
int x = g::size;
