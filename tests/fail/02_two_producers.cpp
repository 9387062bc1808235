// error: TWO_STAGES_WRITE_PORT<rewards
#include "../graph/grpo.hpp"
#ifdef TWIN
struct rule_score { static void run(in<tokens>, inout<rewards>) {} };
#else
struct rule_score { static void run(in<tokens>, out<rewards>) {} };
#endif
using g = weft::graph<weft::feed<prompts>, generate, score, rule_score, group_advantage, policy_loss, sgd, weft::keep<loss>>;
int x = g::size;
