// foreign.hpp — a port that lies in memory of the host program: the plan gives it no bytes, and nothing is copied.
//   bind<g>(cpu{}, sample{64}, foreign<weights>{data, {rows, columns}});            a raw pointer with its layout
//   bind<g>(cpu{}, sample{64}, foreign<weights>{data, {rows, columns}, {columns, 1}});  strides in elements
//   bind<g>(cpu{}, sample{64}, from_dlpack<weights>(tensor));                       a DLTensor of any DLPack header
// Extents are those that bind finds for the port's dims. It must be fed, kept or state, on one device, and dense with the last dim running
// fastest, as every view is. Memory belongs to whoever gave it, for as long as the bound graph lives. State in it counts as loaded.
// Errors: a refusal that names the port and what does not fit.
#pragma once
#include "port.hpp"

namespace weft {
namespace detail {
struct foreign_memory {
  void* data;
  size_t n[most_dims];        // extents
  size_t strides[most_dims];  // in elements; all 0: dense
  size_t element;             // bytes of one
};
template <class T> struct host_element {
  using type = T;
};
template <> struct host_element<real> {
  using type = f32;
};
}  // namespace detail

// T: the element; of a port of reals what the executor computes in.
template <is_port P, class T = typename detail::host_element<typename P::element>::type> struct foreign : detail::foreign_memory {
  static constexpr size_t rank = P::template dims<detail::list>::size;
  template <size_t Rank> foreign(T* at, size_t const (&extents)[Rank]) : foreign_memory{at, {}, {}, sizeof(T)} {
    static_assert(Rank == rank, "as many extents as the port has dims");
    for (size_t k = 0; k < Rank; ++k) n[k] = extents[k];
  }
  template <size_t Rank> foreign(T* at, size_t const (&extents)[Rank], size_t const (&steps)[Rank]) : foreign(at, extents) {
    for (size_t k = 0; k < Rank; ++k) strides[k] = steps[k];
  }
  explicit foreign(T* at)
    requires(rank == 0)
      : foreign_memory{at, {}, {}, sizeof(T)} {}
  explicit foreign(detail::foreign_memory const& m) : foreign_memory{m} {}
};

namespace detail {
template <class T> struct given_as {
  static constexpr id tag = detail::tag<T>;
};  // what bind looks a value up by
template <class P, class T> struct given_as<foreign<P, T>> : given_as<P> {};

struct dl_type {
  int code, bits;
};  // DLPack's DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 10 float8_e4m3fn
template <class T> inline constexpr dl_type dl_type_of = {-1, 0};
template <> inline constexpr dl_type dl_type_of<f32> = {2, 32};
template <> inline constexpr dl_type dl_type_of<double> = {2, 64};
template <> inline constexpr dl_type dl_type_of<bf16> = {4, 16};
template <> inline constexpr dl_type dl_type_of<f8e4m3> = {10, 8};
template <> inline constexpr dl_type dl_type_of<i32> = {0, 32};
template <> inline constexpr dl_type dl_type_of<std::int64_t> = {0, 64};
template <> inline constexpr dl_type dl_type_of<u32> = {1, 32};
template <> inline constexpr dl_type dl_type_of<u64> = {1, 64};
template <> inline constexpr dl_type dl_type_of<std::uint8_t> = {1, 8};
}  // namespace detail

// tensor is a DLTensor: its fields are part of DLPack's ABI. device: DLPack's device type, 1 for the CPU, 2 for CUDA.
template <is_port P, class E = typename detail::host_element<typename P::element>::type, class T>
foreign<P, E> from_dlpack(T const& tensor, int device = 1) {
  constexpr auto want = detail::dl_type_of<E>;
  static_assert(want.code >= 0, "DLPack has no code for this element");
  constexpr size_t rank = foreign<P, E>::rank;
  auto const refuse = [](char const* what, i32 is, i32 wanted) {
    refusal r{};
    (r << "weft::from_dlpack: the tensor for ").name(detail::spelled<P>()) << " has " << what << " " << is << ", the port needs " << wanted;
    throw r;
  };
  auto const check = [&](char const* what, auto is, int wanted) {
    if (i32(is) != wanted) refuse(what, i32(is), wanted);
  };
  check("device type", tensor.device.device_type, device);
  check("rank", tensor.ndim, int(rank));
  check("type code", tensor.dtype.code, want.code);
  check("bits", tensor.dtype.bits, want.bits);
  check("lanes", tensor.dtype.lanes, 1);
  detail::foreign_memory m{static_cast<std::byte*>(tensor.data) + tensor.byte_offset, {}, {}, sizeof(E)};
  for (size_t k = 0; k < rank; ++k) {
    m.n[k] = size_t(tensor.shape[k]);
    if (tensor.strides) m.strides[k] = size_t(tensor.strides[k]);
  }
  return foreign<P, E>{m};
}
}  // namespace weft
