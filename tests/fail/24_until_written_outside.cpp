// error: LOOP_NEVER_WRITES_ITS_UNTIL_PORT<done
#include "../graph/grpo.hpp"
struct turn : weft::dim {};
struct done : weft::port<weft::i32> {};
struct train { static void run(next<weights>) {} };
struct stop { static void run(out<done>) {} };
#ifdef TWIN
using g = weft::graph<weft::each<weft::until<turn, done>, train, stop>>;
#else
using g = weft::graph<stop, weft::each<weft::until<turn, done>, train>>;
#endif
int x = g::size;
