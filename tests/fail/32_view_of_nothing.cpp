// error: PORT_IS_NOT_IN_THE_GRAPH<other
#include "../graph/grpo.hpp"
struct other : weft::port<weft::f32> {};
void f() {
  auto e = weft::bind<grpo>(weft::cpu{}, batch{2}, group{4}, seq{8});
#ifdef TWIN
  e.view_of<loss>()() = 0;
#else
  e.view_of<other>()() = 0;
#endif
}
