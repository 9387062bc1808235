// error: SLICED_DIM_MUST_COME_FIRST<tokens_x
#include "../graph/grpo.hpp"
struct mini : weft::part<batch> {};
#ifdef TWIN
struct tokens_x : weft::port<weft::i32, batch, seq> {};
#else
struct tokens_x : weft::port<weft::i32, seq, batch> {};
#endif
struct train { static void run(in<tokens_x>, next<weights>) {} };
using g = weft::graph<weft::feed<tokens_x>, weft::each<mini, train>>;
int x = g::size;
