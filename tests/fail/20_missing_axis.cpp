// error: BIND_IS_MISSING_A_SIZE_FOR_AXIS<data
#include "../graph/grpo.hpp"
using g = weft::graph<weft::feed<prompts>, weft::at<rollout, generate>, score, group_advantage, policy_loss, sgd, weft::keep<loss>>;
#ifdef TWIN
void f() { weft::bind<g>(weft::cpu{}, batch{2}, group{4}, seq{8}, data{2}).step(); }
#else
void f() { weft::bind<g>(weft::cpu{}, batch{2}, group{4}, seq{8}).step(); }
#endif
