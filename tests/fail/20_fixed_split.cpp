// error: FIXED_DIM_DOES_NOT_DIVIDE<vocab
#include "../graph/grpo.hpp"
#ifdef TWIN
struct shards : weft::pool<weft::split<4, vocab>> {};
#else
struct shards : weft::pool<weft::split<3, vocab>> {};
#endif
struct logits : weft::port<weft::f32, batch, vocab> {};
struct best : weft::port<weft::i32, batch> {};
struct head { static void run(in<prompts>, out<logits>) {} };
struct pick { static void run(in<logits>, out<best>) {} };
using g = weft::graph<weft::feed<prompts>, weft::at<shards, head>, pick, weft::keep<best>>;
int x = g::size;
