// comm/reduce.hpp — sums, minima and maxima of arrays that lie on several ranks, in an order that depends on nothing but the rank numbers:
// the pairs (0,1), (2,3), ... first, then pairs of pairs. A rank that holds 2^k leaves and adds them up in the same way makes a subtree of
// the tree over all leaves: sums over a power of two of leaves are the same bits at 1, 2, 4, ... ranks.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace weft::comm {
using std::size_t;
enum class number { f32, f64, i32, u32, i64, u64 };
enum class operation { sum, min, max };
struct reduction {
  number of;
  operation by;
};
// What may be added up. bf16 is not among them: a sum of narrow elements is kept in a wider one.
template <class T>
concept addable = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
                  std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>;
template <addable T> inline constexpr number number_of = std::same_as<T, float>           ? number::f32
                                                         : std::same_as<T, double>        ? number::f64
                                                         : std::same_as<T, std::int32_t>  ? number::i32
                                                         : std::same_as<T, std::uint32_t> ? number::u32
                                                         : std::same_as<T, std::int64_t>  ? number::i64
                                                                                          : number::u64;
constexpr size_t bytes_of(number n) { return n == number::f32 || n == number::i32 || n == number::u32 ? 4 : 8; }

inline std::string text_of(reduction r) {  // "f32 sum"
  constexpr char const* numbers[] = {"f32", "f64", "i32", "u32", "i64", "u64"};
  constexpr char const* operations[] = {"sum", "min", "max"};
  return std::string(numbers[static_cast<int>(r.of)]) + " " + operations[static_cast<int>(r.by)];
}

// to[i] = left[i] op right[i]; `to` may be either of them
using combine_function = void (*)(void* to, void const* left, void const* right, size_t count);
namespace detail {
template <class T, operation By> void combine(void* to, void const* left, void const* right, size_t count) {
  T* t = static_cast<T*>(to);
  T const *a = static_cast<T const*>(left), *b = static_cast<T const*>(right);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (By == operation::sum) t[i] = a[i] + b[i];
    else if constexpr (By == operation::min) t[i] = b[i] < a[i] ? b[i] : a[i];
    else t[i] = a[i] < b[i] ? b[i] : a[i];
  }
}
template <class T> combine_function combine_by(operation by) {
  return by == operation::sum ? combine<T, operation::sum> : by == operation::min ? combine<T, operation::min> : combine<T, operation::max>;
}
}  // namespace detail
inline combine_function combine_of(reduction r) {
  switch (r.of) {
    case number::f32:
      return detail::combine_by<float>(r.by);
    case number::f64:
      return detail::combine_by<double>(r.by);
    case number::i32:
      return detail::combine_by<std::int32_t>(r.by);
    case number::u32:
      return detail::combine_by<std::uint32_t>(r.by);
    case number::i64:
      return detail::combine_by<std::int64_t>(r.by);
    default:
      return detail::combine_by<std::uint64_t>(r.by);
  }
}

// to[i] = from[0][i] op from[1][i] op ..., in the tree's order. `to` may be one of `from`. Blocks keep the partial results in the cache:
// level[k] is a finished subtree of 2^k leaves, as the bits of a counter of leaves.
inline void tree_reduce(reduction r, std::span<void const* const> from, void* to, size_t count) {
  constexpr size_t block_bytes = 1024, levels = 20;
  alignas(64) std::byte level[levels][block_bytes];
  alignas(64) std::byte sum[block_bytes];
  combine_function const combine = combine_of(r);
  size_t const width = bytes_of(r.of), block = block_bytes / width;
  for (size_t begin = 0; begin < count; begin += block) {
    size_t const n = std::min(block, count - begin), bytes = n * width, offset = begin * width;
    for (size_t leaf = 0; leaf < from.size(); ++leaf) {
      std::memcpy(sum, static_cast<std::byte const*>(from[leaf]) + offset, bytes);
      size_t k = 0;
      for (; leaf >> k & 1; ++k) combine(sum, level[k], sum, n);
      std::memcpy(level[k], sum, bytes);
    }
    bool any = false;
    for (size_t k = 0; from.size() >> k; ++k) {  // subtrees that are left when the count of leaves is no power of two: small ones first
      if (!(from.size() >> k & 1)) continue;
      if (any) combine(sum, level[k], sum, n);
      else std::memcpy(sum, level[k], bytes);
      any = true;
    }
    if (any) std::memcpy(static_cast<std::byte*>(to) + offset, sum, bytes);
  }
}
}  // namespace weft::comm
