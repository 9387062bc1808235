// error: IN_PLACE_UPDATE_IN_ANOTHER_LAYOUT<rewards
#include "../graph/grpo.hpp"
struct bonus { static void run(inout<rewards>) {} };
#ifdef TWIN
using g = weft::graph<weft::feed<prompts>, generate, weft::at<rollout, score, bonus>, group_advantage, policy_loss, sgd, weft::keep<loss>>;
#else
using g = weft::graph<weft::feed<prompts>, generate, weft::at<rollout, score>, bonus, group_advantage, policy_loss, sgd, weft::keep<loss>>;
#endif
int x = g::size;
