// error: TERM_READS_SOMETHING_ELSE<objective::value_clip
#include <weft/objective/objective.hpp>
using namespace weft::objective;
#ifdef TWIN
sum<ppo_clip, entropy> actor;
sum<value_clip> critic;
#else
sum<ppo_clip, entropy, value_clip> o;
#endif
