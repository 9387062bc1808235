// error: SUM_OF_ELEMENTS_THAT_DO_NOT_ADD<small
#include "../graph/grpo.hpp"
#ifdef TWIN
struct small : weft::sum_over<weft::port<weft::f32>, batch> {};
#else
struct small : weft::sum_over<weft::port<weft::bf16>, batch> {};
#endif
struct add { static void run(in<rewards>, out<small>) {} };
using g = weft::graph<weft::feed<rewards>, weft::at<rollout, add>, weft::keep<small>>;
int x = g::size;
