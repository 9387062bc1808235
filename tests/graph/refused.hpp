// refused.hpp — what a refusal says; empty: there was none.
#pragma once
#include <string>
#include "weft/name.hpp"

template <class F> std::string refused(F const& f) {
  try {
    f();
  } catch (weft::refusal const& r) { return r.what; }
  return {};
}
