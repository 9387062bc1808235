// stages/batch.hpp — where the samples of a micro-batch are read from; kernels/assemble.hpp lays them out.
#pragma once
#include <weft/kernels/assemble.hpp>
#include <weft/kernels/rows.hpp>
#include <weft/model/forward.hpp>
#include "ports.hpp"

namespace weft::rl {
template <class Use> kernels::sequences sequences_of(in<prompts<Use>> const& p, in<prompt_lengths<Use>> const& np, in<tokens<Use>> const& t,
                                                     in<lengths<Use>> const& n) {
  return {p.data,
          np.data,
          t.data,
          n.data,
          p.template extent<prompt_position<Use>>(),
          t.template extent<position<Use>>(),
          t.template extent<group<Use>>(),
          n.count()};
}
// bin: the range of `order` that this turn has
template <class E, class Use> kernels::batch assembled(E& on, kernels::sequences const& from, in<bins<Use>> const& bin,
                                                       in<bin_order<Use>> const& order, scratch<packed<Use>> const& room) {
  return kernels::assemble(on, from, order.data, &bin.data->begin, room.template extent<packed_token<Use>>(), room.data);
}

inline model::batch_view view_of(kernels::batch const& b) { return {b.ids, b.positions, b.cu_seqlens, b.tokens, b.sequences}; }

// 1 / temperature of each row's sample, as training must use it
struct inverse_temperatures {
  kernels::batch b;
  kernels::sampling const* how;  // [prompts], or null: 1
  size_t prompt_cells;           // cells of [sample, position] of a prompt
  f32* to;                       // [rows]
  WEFT_HD void operator()(size_t r) const {
    to[r] = !how || b.target[r] < 0 ? 1 : kernels::inverse_temperature_of<f32>(how[size_t(b.cell[r]) / prompt_cells]);
  }
};
// to[cell of row r] = from[r]
struct to_cells {
  kernels::batch b;
  f32 const* from;  // [rows]
  f32* to;          // [sample, position]
  WEFT_HD void operator()(size_t r) const {
    if (b.target[r] >= 0) to[b.cell[r]] = from[r];
  }
};
}  // namespace weft::rl
