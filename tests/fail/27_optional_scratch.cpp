// error: OPTIONAL_IS_FOR_IN_OUT_INOUT_STATE<scratch<rewards>
#include "../graph/grpo.hpp"
struct report { static void run(
#ifdef TWIN
    weft::optional<in<rewards>>,
#else
    weft::optional<scratch<rewards>>,
#endif
    out<advantages>) {} };
using g = weft::graph<report, weft::keep<advantages>>;
int x = g::size;
