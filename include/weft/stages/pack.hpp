// stages/pack.hpp — from samples to micro-batches: an order, cut into mini-batches by the loop, and each of those into bins of a token budget.
// All of it is a pure function of lengths, so that every device computes the same schedule.
#pragma once
#include <weft/kernels/philox.hpp>
#include <weft/kernels/rows.hpp>
#include "ports.hpp"

namespace weft::rl {
template <class Use> struct written_order {  // samples as they stand
  static void run(out<order<Use>> o) {
    for (size_t i = 0; i < o.count(); ++i) o(i) = i32(i);
  }
};
template <class M> struct shuffle {  // a new order each epoch; seed 0 keeps the written one
  static void run(in<epoch_seed<M>> seed, out<order<M>> o) {
    for (size_t i = 0; i < o.count(); ++i) o(i) = i32(i);
    if (seed(0) == 0) return;
    for (size_t i = o.count(); i-- > 1;) {  // Fisher-Yates
      auto const draw = kernels::philox({{std::uint32_t(i), 0, 0, 0}}, seed(0));
      size_t const j = size_t((std::uint64_t(draw.word[0]) * (i + 1)) >> 32);
      i32 const x = o(i);
      o(i) = o(j);
      o(j) = x;
    }
  }
};

// Tokens of a sample that a forward pass computes; 0 for one that is left out.
struct sample_sizes {
  i32 const *prompt_lengths, *lengths, *included;
  size_t group;
  i32 forward(size_t s) const { return included[s] && lengths[s] > 0 ? prompt_lengths[s / group] + lengths[s] - 1 : 0; }
};
// The denominators of a mini-batch: tokens and sequences that count.
template <class Use, class Included = included> struct count_tokens {
  static void run(in<order<Use>> o, in<lengths<training>> n, in<Included> use, out<tallies<Use>> count) {
    count(0) = count(1) = 0;
    for (size_t i = 0; i < o.count(); ++i) {
      size_t const s = size_t(o(i));
      if (!use.flat(s) || n.flat(s) == 0) continue;
      count(0) += n.flat(s);
      ++count(1);
    }
  }
};
// Fills bins next-fit in the given order: a bin is closed when the next sample does not fit; one longer than the budget is alone.
template <class Use, class Included = included> struct pack {
  static void run(in<order<Use>> o, in<prompt_lengths<training>> np, in<lengths<training>> n, in<Included> use,
                  setting<token_budget<Use>> budget, out<bin_order<Use>> to, out<bins<Use>> b, out<bin_count<Use>> used) {
    size_t const lanes = to.template extent<lane>(), group = n.template extent<rl::group<training>>(), prompts = np.count();
    sample_sizes const size{np.data, n.data, use.data, group};
    for (size_t i = 0; i < b.count(); ++i) b.flat(i) = {};
    used() = 0;
    for (size_t l = 0; l < lanes; ++l) {
      share const mine{prompts, lanes, l};
      size_t const first = mine.begin * group, end = mine.end * group;
      i32 at = 0, bin = 0, tokens = 0, rows = 0, samples = 0;
      size_t last = 0;
      auto const close = [&] {  // sizes in eighths of the budget: few, since a GPU captures its work for each
        i32 const step = (budget->tokens / 8 + 255) / 256 * 256, whole = step ? step : 256;
        range& r = b(size_t(bin), l);
        r.end = at, r.tokens = (tokens + whole - 1) / whole * whole, r.rows = (rows + whole - 1) / whole * whole;
      };
      for (size_t i = 0; i < o.count(); ++i) {
        size_t const s = size_t(o(i));
        i32 const more = size.forward(s);
        if (s < first || s >= end || more == 0) continue;
        size_t const unit = i / size_t(budget->together);  // of samples that stay together
        bool const begins = samples == 0 || unit != last;
        last = unit;
        i32 all = 0;
        for (size_t k = i; begins && k < o.count() && k / size_t(budget->together) == unit; ++k) all += size.forward(size_t(o(k)));
        if (begins && samples && (tokens + all > budget->tokens || (budget->samples > 0 && samples >= budget->samples))) {
          close();
          b(size_t(++bin), l).begin = at;
          tokens = rows = samples = 0;
        }
        to(size_t(at++), l) = i32(s - first);
        tokens += more;
        rows += n.flat(s);
        ++samples;
      }
      close();
      if (samples && used() < bin + 1) used() = bin + 1;
    }
  }
};
template <class... P> struct zero {  // where a sum starts
  template <class E> static void run(E& on, out<P>... p) { (kernels::clear(on, p.data, p.count() * sizeof(typename P::element)), ...); }
};
}  // namespace weft::rl
