// philox.hpp — Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): four random words as a function of a
// counter and a key. The key is the seed of the run. For a token the counter is (block of four vocabulary entries, position, sample, draw
// of the prompt).
#pragma once
#include <weft/element.hpp>

namespace weft::kernels {
struct philox_words {
  u32 word[4];
};

inline constexpr int philox_rounds = 10;
inline constexpr u32 philox_weyl_low = 0x9E3779B9u, philox_weyl_high = 0xBB67AE85u;  // added to the key after a round

constexpr philox_words philox_round(philox_words c, u32 k0, u32 k1) {
  u64 const a = u64{0xD2511F53u} * c.word[0], b = u64{0xCD9E8D57u} * c.word[2];
  return {
      {static_cast<u32>(b >> 32) ^ c.word[1] ^ k0, static_cast<u32>(b), static_cast<u32>(a >> 32) ^ c.word[3] ^ k1, static_cast<u32>(a)}};
}
constexpr philox_words philox(philox_words c, u64 key) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  for (int round = 0; round < philox_rounds; ++round, k0 += philox_weyl_low, k1 += philox_weyl_high) c = philox_round(c, k0, k1);
  return c;
}
// The middle of one of 2^23 equal parts of (0, 1): never 0, never 1, exact in float.
constexpr f32 uniform(u32 word) { return (static_cast<f32>(word >> 9) + 0.5f) * 0x1p-23f; }
}  // namespace weft::kernels
