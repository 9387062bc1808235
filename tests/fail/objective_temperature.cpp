// error: TERM_READS_SOMETHING_ELSE<
#include <weft/objective/objective.hpp>
using namespace weft::objective;
using demonstration = masked<sft, response>;
#ifdef TWIN
sum<ppo_clip, reading<demonstration, log_probs<full, tempered>>> o;
#else
sum<ppo_clip, demonstration> o;   // sft reads log-probs at temperature 1
#endif
