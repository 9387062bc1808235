// error: DENOMINATOR_DOES_NOT_FIT_UNIT<
#include <weft/objective/objective.hpp>
using namespace weft::objective;
#ifdef TWIN
sum<aggregated<ppo_clip, aggregation::token_sum>, geo_mean> o;
#else
sum<ppo_clip, aggregated<geo_mean, aggregation::token_mean>> o;   // a sequence divided by tokens
#endif
