// error.hpp — the compile errors of objectives, in the manner of weft/error.hpp: the name is the sentence, never defined.
#pragma once
#include "../error.hpp"

namespace weft::error {
template <class Term, class Is, class Wanted> struct TERM_HAS_ANOTHER_UNIT;  // tokens and pairs: one sum each, added up by source
template <class Term, class Is, class Wanted> struct TERM_HAS_ANOTHER_MASK;  // its denominator would count other tokens: masked<Term, ...>
template <class Term, class Is, class Wanted> struct TERM_READS_SOMETHING_ELSE;  // support, temperature or head differ: reading<Term, ...>
template <class Term, class Is, class Wanted> struct DENOMINATOR_DOES_NOT_FIT_UNIT;   // a sequence is not divided by tokens
template <class Sum, class Is, class Wanted> struct COUNTS_ARE_OF_ANOTHER_MASK;       // count with the mask of the objective
template <class Sum, class Is, class Wanted> struct OBJECTIVE_READS_OTHER_LOG_PROBS;  // the port holds log-probs of another kind
template <class Sum, class Is, class Wanted> struct CHOICE_READS_SOMETHING_ELSE;      // a choice reads one kind of log-prob
template <class Sum, class Is, class Wanted> struct CHOICE_COUNTS_SOMETHING_ELSE;     // and has one mask and one unit
}  // namespace weft::error
