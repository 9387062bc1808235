// error: TERM_HAS_ANOTHER_UNIT<objective::dpo
#include <weft/objective/objective.hpp>
using namespace weft::objective;
#ifdef TWIN
sum<sft> tokens;
sum<dpo> pairs;   // added up by source, each with its own counts
#else
sum<sft, dpo> both;
#endif
