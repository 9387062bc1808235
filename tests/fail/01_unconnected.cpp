// error: NO_STAGE_WRITES_PORT<rewards
#include "../graph/grpo.hpp"
using g = weft::graph<weft::feed<prompts>, generate,
#ifdef TWIN
    score,
#endif
    group_advantage, policy_loss, sgd, weft::keep<loss>>;
int x = g::size;
