// error: BIND_IS_MISSING_A_SETTING<vocab_size
#include "../graph/grpo.hpp"
struct vocab_size { size_t n; };
struct used : weft::dim { static size_t of(vocab_size const& v) { return v.n; } };
struct table : weft::port<weft::f32, used> {};
using g = weft::graph<weft::feed<table>, weft::keep<table>>;
#ifdef TWIN
void f() { weft::bind<g>(weft::cpu{}, vocab_size{10}).step(); }
#else
void f() { weft::bind<g>(weft::cpu{}).step(); }
#endif
