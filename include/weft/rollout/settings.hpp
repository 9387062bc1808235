// rollout/settings.hpp — how generation is run, and the memory that this takes. None of it changes a single bit of what is generated.
#pragma once
#include <weft/kernels/paged.hpp>
#include <weft/kv/pages.hpp>
#include <weft/model/config.hpp>
#include <weft/model/forward.hpp>

namespace weft::rollout {
struct settings {
  i32 slots = 64;            // sequences that decode at a time (max_num_seqs)
  i32 batched_tokens = 512;  // rows of one forward pass: decoding and pieces of prompts (max_num_batched_tokens)
  i32 context = 0;           // longest prompt + response
  i32 pages = 0;             // of the KV pool; any number that holds one longest sequence
  i32 head_rows = 16;        // rows of logits that exist at a time
};

// Never more than this many pages are in use: every slot at its longest, and a prompt behind each that waits for its last sample to start.
constexpr i32 most_pages(settings const& s) { return i32(size_t(s.slots) * 2 * kv::pages_for(size_t(s.context))); }

// The i32 workspace, in elements from its start. Sequences are the slots, then the prompts that wait for theirs ("holders", one for each slot at most).
struct index_layout {
  size_t ids = 0, positions, sequence;  // [batched_tokens]: the rows of a step
  size_t table, held;                   // [sequences, pages of the context], [sequences]
  size_t free_pages, readers;           // [pages]
  size_t slots, order, holders, draws;  // [slots] structs of slots.hpp
  size_t total;
};
inline constexpr size_t slot_ints = 4, holder_ints = 8, draw_ints = 4;
constexpr index_layout index_layout_of(settings const& s) {
  size_t const rows = size_t(s.batched_tokens), slots = size_t(s.slots), pages = size_t(s.pages);
  index_layout l;
  l.positions = rows;
  l.sequence = l.positions + rows;
  l.table = l.sequence + rows;
  l.held = l.table + 2 * slots * kv::pages_for(size_t(s.context));
  l.free_pages = l.held + 2 * slots;
  l.readers = l.free_pages + pages;
  l.slots = l.readers + pages;
  l.order = l.slots + slots * slot_ints;
  l.holders = l.order + slots;
  l.draws = l.holders + slots * holder_ints;
  l.total = l.draws + slots * draw_ints;
  return l;
}

// The workspace of T, likewise.
struct real_layout {
  size_t hidden = 0;  // [batched_tokens, hidden]: of a step's rows
  size_t waiting;     // [slots, hidden]: of the last token of each holder's prompt
  size_t gathered;    // [head_rows, hidden]: of the rows that are drawn from
  size_t forward;     // model::forward_paged's
  size_t total;
};
inline real_layout real_layout_of(settings const& s, model::config const& c) {
  size_t const width = size_t(c.hidden);
  real_layout l;
  l.waiting = size_t(s.batched_tokens) * width;
  l.gathered = l.waiting + size_t(s.slots) * width;
  l.forward = (l.gathered + size_t(s.head_rows) * width + 15) / 16 * 16;
  l.total = l.forward + model::paged_workspace_count(c, size_t(s.batched_tokens));
  return l;
}

// On a GPU (engine/cuda/generate.hpp): rows in products of 256, the state of every row in device memory.
constexpr size_t padded_rows(size_t n) { return (n + 255) / 256 * 256; }
struct gpu_layout {
  size_t rows, slots;  // of one forward pass; of a decode step
  // i32 words: of a prefill [rows] each, cu_seqlens and last_rows one more; the table; a row of a decode step has row_words; what samples share
  size_t ids = 0, positions, sequence, cu_seqlens, last_rows, table, state, starting, copies, rules, total;
  size_t hidden = 0, waiting, forward, reals;  // elements: [rows, hidden], [slots, hidden], forward_paged's; in all
  static constexpr size_t row_words = 48, rule_words = 3 * 4096;
};
inline size_t decode_workspace_count(model::config const& c, size_t rows) {  // of model::decode_forward
  size_t const attention = 3 * c.q_width() + 2 * c.kv_width(), mlp = 3 * size_t(c.intermediate);
  return rows * (4 * size_t(c.hidden) + (attention > mlp ? attention : mlp)) + 128;
}
inline gpu_layout gpu_layout_of(settings const& s, model::config const& c) {
  gpu_layout l;
  l.rows = padded_rows(size_t(s.batched_tokens > s.slots ? s.batched_tokens : s.slots)), l.slots = padded_rows(size_t(s.slots));
  l.positions = l.rows, l.sequence = 2 * l.rows, l.cu_seqlens = 3 * l.rows, l.last_rows = 4 * l.rows + 64, l.table = 5 * l.rows + 64;
  l.state = l.table + (2 * size_t(s.slots) * kv::pages_for(size_t(s.context)) + 63) / 64 * 64;
  l.starting = l.state + l.slots * gpu_layout::row_words, l.copies = l.starting + l.slots * gpu_layout::row_words;
  l.rules = l.copies + 4 * l.slots, l.total = l.rules + gpu_layout::rule_words;
  size_t const width = size_t(c.hidden), paged = model::paged_workspace_count(c, l.rows), decode = decode_workspace_count(c, l.slots);
  l.waiting = l.rows * width, l.forward = l.waiting + l.slots * width, l.reals = l.forward + (paged > decode ? paged : decode);
  return l;
}

// Elements of each array of a workspace: what a stage declares as scratch.
struct workspace_sizes {
  size_t ints, reals, logits, pool;
};
template <class Kv> workspace_sizes workspace_sizes_of(settings const& s, model::config const& c, bool on_gpu = false) {
  if (gpu_layout const g = gpu_layout_of(s, c); on_gpu)
    return {g.total, g.reals, g.slots * size_t(c.vocab), size_t(s.pages) * kernels::page_elements<Kv>(size_t(c.layers), size_t(c.kv_heads), size_t(c.head_dim))};
  return {index_layout_of(s).total, real_layout_of(s, c).total, 2 * size_t(s.head_rows) * size_t(c.vocab),
          size_t(s.pages) * kernels::page_elements<Kv>(size_t(c.layers), size_t(c.kv_heads), size_t(c.head_dim))};
}
template <class T, class Kv> struct workspace {
  i32* ints;
  T* reals;
  T* logits;  // [2, head_rows, vocab]: logits, and the sampler's room for each
  Kv* pool;   // [pages][layers][key, value][kv_heads][64][row]
};
}  // namespace weft::rollout
