// error: SPLIT_NEEDS_AN_AXIS_FIRST<batch
#include "../graph/grpo.hpp"
#ifdef TWIN
struct trainer : weft::pool<weft::split<data, batch, group>> {};
#else
struct trainer : weft::pool<weft::split<batch, group>> {};
#endif
