// error: PORT_HAS_WRONG_ELEMENT<count
#include "../graph/grpo.hpp"
struct micro : weft::dim {};
#ifdef TWIN
struct count : weft::port<weft::i32> {};
#else
struct count : weft::port<weft::f32> {};
#endif
struct train { static void run(next<weights>) {} };
using g = weft::graph<weft::feed<count>, weft::each<weft::upto<micro, count>, train>>;
int x = g::size;
