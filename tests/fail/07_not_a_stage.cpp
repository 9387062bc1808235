// error: NOT_A_STAGE_give_it_a_static_run<oops
#include "../graph/grpo.hpp"
#ifdef TWIN
struct oops { static void run(in<tokens>, in<logp_old>) {} };
#else
struct oops { void operator()(in<tokens>) {} };
#endif
using g = weft::graph<weft::feed<prompts>, generate, oops>;
int x = g::size;
