// rollout/stopping.hpp — when a sample ends, and what that is called. The reason is recorded once, here, and is the only source for masks and ratios later.
#pragma once
#include <weft/element.hpp>

namespace weft::rollout {
// Ended by stop id k: stop_id + k. The stop id itself is a token of the response, and so is the token that completes a stop string.
enum class finish : i32 { running = 0, length, stop_string, aborted, stop_id = 16 };
constexpr finish finish_by_stop_id(size_t k) { return finish(i32(finish::stop_id) + i32(k)); }
constexpr bool is_stop_id(finish f) { return i32(f) >= i32(finish::stop_id); }

// Byte strings one behind the other: string i is bytes[offsets[i] .. offsets[i + 1]). Borrowed.
struct byte_strings {
  i32 const* offsets = nullptr;  // [count + 1]
  unsigned char const* bytes = nullptr;
  i32 count = 0;

  constexpr size_t size(size_t i) const { return size_t(offsets[i + 1] - offsets[i]); }
  constexpr unsigned char const* operator[](size_t i) const { return bytes + offsets[i]; }
};

struct stopping {
  i32 const* ids = nullptr;  // [id_count]
  i32 id_count = 0;
  byte_strings strings;  // none of them empty
  byte_strings tokens;   // the bytes of every id; an id beyond them has none. Needed by strings only
};

// Does an occurrence of string s end within the last token? Matching runs over the bytes of the response alone, backwards, across the borders of tokens.
inline bool completes(byte_strings const& strings, size_t s, byte_strings const& tokens, i32 const* ids, size_t length) {
  auto const size_of = [&](size_t token) { return ids[token] < tokens.count ? tokens.size(size_t(ids[token])) : size_t{}; };
  for (size_t end = size_of(length - 1); end > 0; --end) {
    size_t token = length - 1, at = end, left = strings.size(s);
    while (left > 0) {
      while (at == 0 && token > 0) at = size_of(--token);
      if (at == 0 || tokens[size_t(ids[token])][at - 1] != strings[s][left - 1]) break;
      --at, --left;
    }
    if (left == 0) return true;
  }
  return false;
}

// Why a response of `length` >= 1 tokens ends here, or `running`. Stop strings wait for `least` tokens (stop ids are not drawn before).
inline finish reason_to_stop(stopping const& stop, i32 const* ids, size_t length, size_t least, size_t most) {
  for (size_t k = 0; k < size_t(stop.id_count); ++k)
    if (stop.ids[k] == ids[length - 1]) return finish_by_stop_id(k);
  if (length >= least)
    for (size_t s = 0; s < size_t(stop.strings.count); ++s)
      if (completes(stop.strings, s, stop.tokens, ids, length)) return finish::stop_string;
  return length >= most ? finish::length : finish::running;
}
}  // namespace weft::rollout
