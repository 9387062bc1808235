// error: SETTING_IS_NOT_IN_THE_GRAPH<sampling
#include "../graph/grpo.hpp"
struct sampling { float temperature; };
struct clip { float range; };
struct draw { static void run(setting<clip>, out<prompts>) {} };
using g = weft::graph<draw, weft::keep<prompts>>;
void f() {
  auto e = weft::bind<g>(weft::cpu{}, batch{2}, clip{0.2f});
#ifdef TWIN
  e.setting<clip>().range = 0.3f;
#else
  e.setting<sampling>().temperature = 1;
#endif
}
