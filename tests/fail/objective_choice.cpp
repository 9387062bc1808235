// error: CHOICE_COUNTS_SOMETHING_ELSE<
#include <weft/objective/objective.hpp>
using namespace weft::objective;
using demonstrations = reading<masked<entropy, completion>, log_probs<full, tempered>>;
#ifdef TWIN
choice<sum<ppo_clip, kl>, sum<gspo, entropy>> o;
#else
choice<sum<ppo_clip, kl>, sum<demonstrations>> o;   // its denominator would count other tokens
#endif
