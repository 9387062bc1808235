// answer_text.cpp — two texts cut at the first zero byte: answers are found or not, and sameness is the same both ways round.
#include <weft/train/answer_text.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const all(reinterpret_cast<char const*>(data), size);
  std::size_t const cut = std::min(all.find('\0'), size);
  std::string_view const a = all.substr(0, cut), b = all.substr(std::min(cut + 1, size));
  if (auto const number = weft::train::last_hash_number(a)) fuzz::demand(!number->empty() && number->size() <= 300);
  if (auto const box = weft::train::last_boxed(a)) fuzz::demand(box->size() < a.size());
  fuzz::demand(weft::train::same_answer(a, a));
  fuzz::demand(weft::train::same_answer(a, b) == weft::train::same_answer(b, a));
  if (auto const n = weft::train::number_in(a)) fuzz::demand(n->below > 0);
  return 0;
}
