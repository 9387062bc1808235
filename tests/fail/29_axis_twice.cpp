// error: POOL_HAS_AN_AXIS_TWICE<data
#include "../graph/grpo.hpp"
struct tensor : weft::axis {};
#ifdef TWIN
struct trainer : weft::pool<weft::split<data, batch>, weft::split<tensor, group>> {};
#else
struct trainer : weft::pool<weft::split<data, batch>, weft::split<tensor, group>, weft::split<data, seq>> {};
#endif
