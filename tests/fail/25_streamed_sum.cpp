// error: STREAMED_DIM_MUST_COME_FIRST<total
#include "../graph/grpo.hpp"
#ifdef TWIN
struct total : weft::port<weft::f32, batch> {};
#else
struct total : weft::port<weft::f32> {};                      // each block would overwrite it
#endif
struct add { static void run(weft::stream<rewards>, out<total>) {} };
using g = weft::graph<weft::feed<prompts>, generate, score, add, weft::keep<total>, weft::keep<logp_old>>;
int x = g::size;
