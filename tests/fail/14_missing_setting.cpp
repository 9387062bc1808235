// error: BIND_IS_MISSING_A_SETTING<sampling
#include "../graph/grpo.hpp"
struct sampling { float temperature; };
struct vocab_size { size_t n; };
struct used : weft::dim { static size_t of(vocab_size v, seq s) { return v.n + s.size; } };   // settings may size a dim
struct table : weft::port<weft::f32, used> {};
struct sampler { static void run(setting<sampling>, scratch<table>, out<prompts>) {} };
using g = weft::graph<sampler, weft::keep<prompts>>;
#ifdef TWIN
void f() { weft::bind<g>(weft::cpu{}, batch{2}, seq{8}, vocab_size{10}, sampling{1}).step(); }
#else
void f() { weft::bind<g>(weft::cpu{}, batch{2}, seq{8}, vocab_size{10}).step(); }
#endif
