// error: SHARED_STATE_IN_TWO_LAYOUTS<table
#include "../graph/grpo.hpp"
struct table : weft::port<weft::f32, batch> {};
struct read { static void run(state<table>, out<prompts>) {} };
struct write { static void run(next<table>) {} };
using a = weft::graph<weft::at<rollout, read>, weft::keep<prompts>>;
#ifdef TWIN
using b = weft::graph<weft::at<rollout, write>>;
#else
using b = weft::graph<write>;
#endif
void f() { auto both = weft::bind<a, b>(weft::cpu{}, batch{4}, data{2}); both.step<a>(); both.step<b>(); }
