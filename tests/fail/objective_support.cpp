// error: TERM_READS_SOMETHING_ELSE<objective::reading<objective::kl
#include <weft/objective/objective.hpp>
using namespace weft::objective;
using kept = log_probs<filtered, tempered>;
#ifdef TWIN
sum<reading<ppo_clip, kept>, reading<kl, kept>> o;
#else
sum<ppo_clip, reading<kl, kept>> o;   // one over the whole vocabulary, one over what top-k kept
#endif
