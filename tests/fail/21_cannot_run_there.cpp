// error: STAGE_CANNOT_RUN_ON<judge
#include "../graph/grpo.hpp"
struct other {};                                              // an executor that is not ours
#ifdef TWIN
struct judge { static void run(weft::cpu&, in<tokens>, out<rewards>) {} };
#else
struct judge { static void run(other&, in<tokens>, out<rewards>) {} };
#endif
using g = weft::graph<weft::feed<tokens>, weft::at<weft::host, judge>, weft::keep<rewards>>;
void f() { weft::bind<g>(weft::cpu{}, batch{2}, group{4}, seq{8}).step(); }
