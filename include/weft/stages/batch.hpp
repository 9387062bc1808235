// stages/batch.hpp — a micro-batch laid out for the model: sequences end to end, no padding, and which of its rows predict response tokens.
// The last token of a sequence predicts nothing and is left out.
#pragma once
#include <weft/kernels/rows.hpp>
#include "ports.hpp"

namespace weft::rl {
struct sequences {            // where samples are read from, on one device
  i32 const* prompts;         // [prompt, prompt_room]
  i32 const* prompt_lengths;  // [prompt]
  i32 const* tokens;          // [prompt * group, room]
  i32 const* lengths;         // [prompt * group]
  size_t prompt_room, room, group;
};
template <class Use>
sequences sequences_of(in<prompts<Use>> const& p, in<prompt_lengths<Use>> const& np, in<tokens<Use>> const& t, in<lengths<Use>> const& n) {
  return {p.data,
          np.data,
          t.data,
          n.data,
          p.template extent<prompt_position<Use>>(),
          t.template extent<position<Use>>(),
          t.template extent<group<Use>>()};
}

struct batch {  // over one packed port; a field is [packed_token]
  i32 *ids, *positions, *cu_seqlens;
  // [rows]: packed token whose hidden state predicts, the id that came, its place in [sample, position], its sequence in the batch
  i32 *row, *target, *cell, *owner;
  i32 tokens = 0, sequences = 0, rows = 0;
  model::batch_view view() const { return {ids, positions, cu_seqlens, tokens, sequences}; }
};
template <class Use> batch assemble(sequences const& from, i32 const* samples, size_t count, scratch<packed<Use>> const& room) {
  size_t const n = room.template extent<packed_token<Use>>();
  batch b{room.data, room.data + n, room.data + 2 * n, room.data + 3 * n, room.data + 4 * n, room.data + 5 * n, room.data + 6 * n};
  b.cu_seqlens[0] = 0;
  for (size_t k = 0; k < count; ++k) {
    size_t const s = size_t(samples[k]), p = s / from.group;
    i32 const prompt = from.prompt_lengths[p], response = from.lengths[s];
    for (i32 t = 0; t < prompt + response - 1; ++t) {
      if (t >= prompt - 1) {
        size_t const cell = s * from.room + size_t(t - prompt + 1);
        b.row[b.rows] = b.tokens;
        b.target[b.rows] = from.tokens[cell];
        b.owner[b.rows] = i32(k);
        b.cell[b.rows++] = i32(cell);
      }
      b.positions[b.tokens] = t;
      b.ids[b.tokens++] = t < prompt ? from.prompts[p * from.prompt_room + size_t(t)] : from.tokens[s * from.room + size_t(t - prompt)];
    }
    b.cu_seqlens[++b.sequences] = b.tokens;
  }
  return b;
}
}  // namespace weft::rl
