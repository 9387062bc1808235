// error: STAGES_FORM_A_CYCLE<
#include "../graph/grpo.hpp"
struct a { static void run(in<rewards>, out<advantages>) {} };
struct b { static void run(in<advantages>, out<grads>) {} };
#ifdef TWIN
struct c { static void run(in<grads>, state<weights>, next<weights>) {} };
using g = weft::graph<weft::feed<rewards>, a, b, c>;
#else
struct c { static void run(in<grads>, out<rewards>) {} };
using g = weft::graph<a, b, c>;
#endif
int x = g::size;
