// error: STREAM_HAS_NO_DIM<loss
#include "../graph/grpo.hpp"
struct report { static void run(
#ifdef TWIN
    in<loss>
#else
    weft::stream<loss>
#endif
    , out<advantages>) {} };
using g = weft::graph<weft::feed<loss>, report, weft::keep<advantages>>;
int x = g::size;
