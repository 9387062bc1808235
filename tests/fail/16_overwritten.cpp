// error: EACH_ITERATION_OVERWRITES_PORT<last
#include "../graph/grpo.hpp"
struct epoch : weft::dim {};
#ifdef TWIN
struct last : weft::port<weft::f32, epoch> {};
#else
struct last : weft::port<weft::f32> {};
#endif
struct train { static void run(in<tokens>, in<logp_old>, next<weights>, out<last>) {} };
using g = weft::graph<weft::feed<prompts>, generate, weft::each<epoch, train>, weft::keep<last>>;
int x = g::size;
