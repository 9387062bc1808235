// error: LOOP_OVER_A_SPLIT_DIM<rewards
#include "../graph/grpo.hpp"
struct mini : weft::part<batch> {};
struct look { static void run(in<rewards>, out<advantages>) {} };
#ifdef TWIN
using g = weft::graph<weft::feed<rewards>, weft::at<rollout, weft::each<mini, look>>, weft::keep<advantages>>;
#else
using g = weft::graph<weft::feed<rewards>, weft::at<rollout, weft::each<batch, look>>, weft::keep<advantages>>;
#endif
int x = g::size;
