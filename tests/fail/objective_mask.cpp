// error: TERM_HAS_ANOTHER_MASK<objective::reading<objective::entropy
#include <weft/objective/objective.hpp>
using namespace weft::objective;
using full_plain = log_probs<full, plain>;
#ifdef TWIN
sum<sft, reading<masked<entropy, completion>, full_plain>> o;
#else
sum<sft, reading<entropy, full_plain>> o;   // would be divided by the response tokens
#endif
