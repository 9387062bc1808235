// error: NOBODY_READS_PORT_add_keep<loss
#include "../graph/grpo.hpp"
using g = weft::graph<weft::feed<prompts>, generate, score, group_advantage, policy_loss,
#ifdef TWIN
    weft::keep<loss>,
#endif
    sgd>;
int x = g::size;
