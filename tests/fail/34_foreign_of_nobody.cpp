// error: PORT_IS_NOT_IN_THE_GRAPH<advantages
#include "../graph/grpo.hpp"
struct draw { static void run(out<prompts>) {} };
using g = weft::graph<draw, weft::keep<prompts>>;
#ifdef TWIN
using bound = prompts;
#else
using bound = advantages;
#endif
void f(weft::foreign<bound> const& there) { weft::bind<g>(weft::cpu{}, batch{2}, group{2}, there); }
