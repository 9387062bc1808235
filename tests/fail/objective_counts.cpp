// error: COUNTS_ARE_OF_ANOTHER_MASK<
#include <weft/objective/objective.hpp>
using namespace weft::objective;
#ifdef TWIN
using counted = counts<completion>;
#else
using counted = counts<response>;
#endif
auto gradient(sum<sft> const& o, token<float> const& t, counted const& n) { return o.evaluate(t, sequence<float>{1.f}, n); }
