// error: OBJECTIVE_READS_OTHER_LOG_PROBS<
#include <weft/objective/objective.hpp>
using namespace weft::objective;
#ifdef TWIN
using recorded = log_probs<full, tempered>;
#else
using recorded = log_probs<filtered, tempered>;   // what the sampler renormalised
#endif
struct update : accepts<sum<ppo_clip, kl>, recorded> {};
