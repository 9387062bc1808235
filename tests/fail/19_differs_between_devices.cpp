// error: PORT_DIFFERS_BETWEEN_DEVICES<total
#include "../graph/grpo.hpp"
#ifdef TWIN
struct total : weft::sum_over<weft::port<weft::f32>, batch> {};
#else
struct total : weft::port<weft::f32> {};
#endif
struct add { static void run(in<rewards>, out<total>) {} };
using g = weft::graph<weft::feed<rewards>, weft::at<rollout, add>, weft::keep<total>>;
int x = g::size;
