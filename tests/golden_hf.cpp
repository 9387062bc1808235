// golden_hf FOLDER...: compares with what Hugging Face transformers computed. Each folder holds a checkpoint and golden.safetensors (see
// tests/data/README.md). Prints one line per folder and one per failure, then `N passed, N failed, N skipped`; exits with 0 if nothing
// failed, 2 if a folder cannot be read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <program/program.hpp>
#include <weft/io/hf_config.hpp>
#include <weft/io/hf_model.hpp>
#include <weft/kernels/head.hpp>
#include <weft/model/backward.hpp>
#include <weft/model/heads.hpp>
#include <weft/model/rope_table.hpp>

namespace {
using namespace weft;
using floats = std::vector<float>;

struct counts {
  int passed = 0, failed = 0, skipped = 0;
  void check(bool good, std::string const& what) {
    ++(good ? passed : failed);
    if (!good) fmt::print("FAILED {}\n", what);
  }
  void skip(std::string const& what) { ++skipped, fmt::print("skipped {}: not in golden.safetensors\n", what); }
};

// Largest difference over the largest reference.
double relative(std::span<float const> ours, std::span<float const> theirs) {
  double difference = 0, most = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    double const d = std::abs(double(ours[i]) - double(theirs[i]));
    if (std::isnan(d)) return d;
    difference = std::max(difference, d);
    most = std::max(most, std::abs(double(theirs[i])));
  }
  return difference == 0 ? 0 : difference / most;
}
double relative_norm(std::span<float const> ours, std::span<float const> theirs) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < ours.size(); ++i)
    difference += std::pow(double(ours[i]) - double(theirs[i]), 2), norm += std::pow(double(theirs[i]), 2);
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

struct folder_test {
  io::path folder;
  counts& count;
  model::config c;
  io::safetensors_file golden;
  floats weights, rope;
  kernels::cpu_context on;
  size_t const hidden, vocab;
  size_t positions = 0;  // of the longest sequence

  folder_test(io::path const& where, counts& to)
      : folder(where)
      , count(to)
      , c(io::read_hf_config(folder).model)
      , golden(folder / "golden.safetensors")
      , hidden(size_t(c.hidden))
      , vocab(size_t(c.vocab)) {
    if (c.labels > 0) io::refuse("{}: a language model is needed, this one has a score head", folder.string());
    io::hf_weights const file(folder, c);
    weights.resize(model::parameter_count(c));
    file.read(weights.data());
    for (char const* name : {"input_ids", "greedy"})
      if (io::tensor_info const* ids = golden.find(name); ids && ids->shape.size() == 2)
        positions = std::max(positions, size_t(ids->shape[1]));
    if (positions > size_t(c.max_positions))
      io::refuse("{}: {} positions, the model has {}", golden.file().string(), positions, c.max_positions);
    rope.resize(positions * size_t(c.head_dim));
    model::fill_rope_table(c, positions, rope.data());
  }

  std::vector<i32> ids_of(char const* name) const {
    std::vector<i32> ids = golden.read<i32>(name);
    for (i32 id : ids)
      if (id < 0 || id >= c.vocab)
        io::refuse("{}: {} holds the token {}; the vocabulary has {}", golden.file().string(), name, id, c.vocab);
    return ids;
  }
  floats reference(std::string const& name, size_t count_of) const {
    floats values = golden.read<float>(name);
    if (values.size() != count_of)
      io::refuse("{}: {} has {} elements, {} were expected", golden.file().string(), name, values.size(), count_of);
    return values;
  }
  void compare(std::string const& name, double error, double most) {
    count.check(error <= most, fmt::format("{} {}: {:.2e}, allowed {:.0e}", folder.string(), name, error, most));
  }

  floats logits_of(std::span<float const> states) {
    size_t const rows = states.size() / hidden;
    floats logits(rows * vocab);
    kernels::gemm_nt(on, rows, vocab, hidden, states.data(), hidden, model::head_weight(c, weights.data()), hidden, logits.data(), vocab,
                     false);
    return logits;
  }
  i32 greedy_token(std::span<float const> state) {
    floats const logits = logits_of(state);
    return i32(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  void training();
  void gradients(floats const& ours);
  void greedy(char const* how, std::function<i32(std::vector<i32> const&)> const& next);
  void greedy_plain();
  void greedy_paged();
  void continuation();
};

// Logits, hidden states, log-probs, loss and gradients of the packed batch.
void folder_test::training() {
  io::tensor_info const& shape = golden.at("input_ids");
  if (shape.shape.size() != 2) io::refuse("{}: input_ids must be [sequences, positions]", golden.file().string());
  size_t const sequences = size_t(shape.shape[0]), width = size_t(shape.shape[1]);
  std::vector<i32> const ids = ids_of("input_ids"), lengths = golden.read<i32>("lengths");
  if (lengths.size() != sequences) io::refuse("{}: {} lengths for {} sequences", golden.file().string(), lengths.size(), sequences);

  std::vector<i32> packed, places, cu_seqlens{0}, targets;  // targets: of the rows that have a next token
  std::vector<size_t> place, rows;                          // of each token in the padded reference; rows with a target
  for (size_t s = 0; s < sequences; ++s) {
    if (lengths[s] < 1 || size_t(lengths[s]) > width) io::refuse("{}: length {} is out of range", golden.file().string(), lengths[s]);
    for (size_t p = 0; p < size_t(lengths[s]); ++p) {
      if (p + 1 < size_t(lengths[s])) rows.push_back(packed.size()), targets.push_back(ids[s * width + p + 1]);
      packed.push_back(ids[s * width + p]), places.push_back(i32(p)), place.push_back(s * width + p);
    }
    cu_seqlens.push_back(i32(packed.size()));
  }
  size_t const tokens = packed.size();
  model::batch_view const batch{packed.data(), places.data(), cu_seqlens.data(), i32(tokens), i32(sequences)};
  floats scratch(model::activation_count(c, tokens, false)), states(tokens * hidden);
  model::forward(on, c, false, rope.data(), weights.data(), batch, scratch.data(), states.data());

  auto const packed_reference = [&](char const* name, size_t row) {
    floats const padded = reference(name, sequences * width * row);
    floats out;
    for (size_t at : place) out.insert(out.end(), padded.begin() + long(at * row), padded.begin() + long((at + 1) * row));
    return out;
  };
  compare("hidden", relative(states, packed_reference("hidden", hidden)), 2e-4);
  compare("logits", relative(logits_of(states), packed_reference("logits", vocab)), 2e-4);

  floats head_in, log_prob(rows.size()), entropy(rows.size()), dhead_in(rows.size() * hidden), chunk(16 * vocab), gradient(weights.size());
  floats const temperature(rows.size(), 1.0f);
  for (size_t row : rows) head_in.insert(head_in.end(), states.begin() + long(row * hidden), states.begin() + long((row + 1) * hidden));
  float const share = -1.0f / float(rows.size());
  kernels::head_loss(
      on, rows.size(), hidden, vocab, head_in.data(), model::head_weight(c, weights.data()), targets.data(), temperature.data(), 16,
      chunk.data(),
      [&](size_t, float, float) {
        return kernels::token_gradient<float>{share, 0};
      },
      log_prob.data(), entropy.data(), dhead_in.data(), model::head_weight(c, gradient.data()));
  floats const padded_log_prob = reference("log_prob", sequences * (width - 1));
  floats theirs, dstates(tokens * hidden);
  double loss = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    size_t const s = place[rows[i]] / width, p = place[rows[i]] % width;
    theirs.push_back(padded_log_prob[s * (width - 1) + p]);
    loss -= double(log_prob[i]) / double(rows.size());
    std::copy_n(dhead_in.begin() + long(i * hidden), hidden, dstates.begin() + long(rows[i] * hidden));
  }
  compare("log-probs", relative(log_prob, theirs), 2e-4);
  double const loss_of_reference = double(reference("loss", 1)[0]);
  compare("loss", std::abs(loss - loss_of_reference) / std::abs(loss_of_reference), 1e-5);
  model::backward(on, c, false, rope.data(), weights.data(), batch, scratch.data(), dstates.data(), gradient.data());
  gradients(gradient);
}

void folder_test::gradients(floats const& ours) {
  size_t compared = 0, given = 0;
  for (io::tensor_info const& t : golden.tensors()) given += t.name.starts_with("grad.");
  if (given == 0) return count.skip("gradients");
  model::for_each_tensor(c, [&](model::tensor const& t) {
    std::string const name = "grad." + model::full_name(t);
    if (!golden.find(name)) return count.check(false, fmt::format("{} {} is missing", folder.string(), name));
    ++compared;
    compare(name, relative_norm({ours.data() + t.offset, t.size()}, reference(name, t.size())), 1e-3);
  });
  count.check(compared == given, fmt::format("{}: {} gradients are given, the model has {}", folder.string(), given, compared));
}

void folder_test::greedy(char const* how, std::function<i32(std::vector<i32> const&)> const& next) {
  std::vector<i32> const expected = ids_of("greedy");
  std::vector<i32> text = ids_of("greedy_prompt");
  if (text.empty() || text.size() > expected.size() || expected.size() > positions)
    io::refuse("{}: greedy has {} tokens after a prompt of {}", golden.file().string(), expected.size(), text.size());
  while (text.size() < expected.size()) text.push_back(next(text));
  auto const differ = std::mismatch(text.begin(), text.end(), expected.begin());
  count.check(text == expected,
              fmt::format("{} greedy tokens {}: the first difference is at {}", folder.string(), how, differ.first - text.begin()));
}

// The whole sequence again for each token.
void folder_test::greedy_plain() {
  greedy("by plain forward", [&](std::vector<i32> const& text) {
    std::vector<i32> places(text.size()), cu_seqlens{0, i32(text.size())};
    for (size_t i = 0; i < text.size(); ++i) places[i] = i32(i);
    floats scratch(model::activation_count(c, text.size(), true)), states(text.size() * hidden);
    model::forward(on, c, true, rope.data(), weights.data(), {text.data(), places.data(), cu_seqlens.data(), i32(text.size()), 1},
                   scratch.data(), states.data());
    return greedy_token({states.data() + (text.size() - 1) * hidden, hidden});
  });
}

// Prefill, then one token a step, over pages that stand in falling order.
void folder_test::greedy_paged() {
  size_t const layers = size_t(c.layers), pages = (positions + 63) / 64;
  floats pool(pages * kernels::page_elements<float>(layers, size_t(c.kv_heads), size_t(c.head_dim)));
  std::vector<i32> table(pages);
  for (size_t i = 0; i < pages; ++i) table[i] = i32(pages - 1 - i);
  kernels::paged_pool<float> const view{pool.data(), layers, size_t(c.kv_heads), size_t(c.head_dim), table.data(), pages};
  size_t done = 0;
  greedy("over pages", [&](std::vector<i32> const& text) {
    size_t const rows = text.size() - done;
    std::vector<i32> places(rows), sequence(rows, 0);
    for (size_t i = 0; i < rows; ++i) places[i] = i32(done + i);
    floats workspace(model::paged_workspace_count(c, rows)), states(rows * hidden);
    model::forward_paged(on, c, rope.data(), weights.data(), rows, text.data() + done, places.data(), sequence.data(), view,
                         workspace.data(), states.data());
    done = text.size();
    return greedy_token({states.data() + (rows - 1) * hidden, hidden});
  });
}

void folder_test::continuation() {
  if (!golden.find("greedy")) return count.skip("greedy");
  greedy_plain();
  greedy_paged();
}
}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  program::about const about{"golden_hf", "Compare checkpoints with what Hugging Face transformers computed"};
  return program::main(argc, argv, about,
                       {{"folders", &folders, "checkpoint folders with golden.safetensors (default: those in tests/data/hf)"}}, [&] {
                         if (folders.empty())
                           for (auto const& entry : std::filesystem::directory_iterator("tests/data/hf"))
                             folders.push_back(entry.path().string());
                         std::sort(folders.begin(), folders.end());
                         counts count;
                         for (std::string const& folder : folders) {
                           fmt::print("{}\n", folder);
                           folder_test test(folder, count);
                           test.training();
                           test.continuation();
                         }
                         fmt::print("{} passed, {} failed, {} skipped\n", count.passed, count.failed, count.skipped);
                         return count.failed == 0 ? 0 : 1;
                       });
}
