// error: LOOP_SLICES_DIFFER_BETWEEN_POOLS<in_loop<mini>
#include "../graph/grpo.hpp"
struct mini : weft::part<batch> {};
struct total : weft::sum_over<weft::port<weft::f32, mini>, batch> {};
struct note : weft::port<weft::f32, mini> {};
struct add { static void run(in<rewards>, out<total>) {} };
struct look { static void run(in<prompts>, out<note>) {} };
#ifdef TWIN
using g = weft::graph<weft::feed<rewards>, weft::feed<prompts>, weft::each<mini, add, look>, weft::keep<total>, weft::keep<note>>;
#else
using g = weft::graph<weft::feed<rewards>, weft::feed<prompts>, weft::each<mini, weft::at<rollout, add>, look>, weft::keep<total>, weft::keep<note>>;
#endif
int x = g::size;
