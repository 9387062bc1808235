// error: IN_PLACE_ORDER_IS_OPEN_use_then<rewards
#include "../graph/grpo.hpp"
struct bonus { static void run(inout<rewards>) {} };
struct limit { static void run(inout<rewards>) {} };
#ifdef TWIN
using g = weft::graph<weft::feed<prompts>, generate, score, weft::then<bonus, limit>, group_advantage, policy_loss, sgd, weft::keep<loss>>;
#else
using g = weft::graph<weft::feed<prompts>, generate, score, bonus, limit, group_advantage, policy_loss, sgd, weft::keep<loss>>;
#endif
int x = g::size;
