// loaded_model.hpp — a model's folder in memory, for programs that only compute with it: weights, tokenizer (none where the folder has none),
// rotary table, threads.
#pragma once
#include <weft/io/lines.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/train/model_files.hpp>

#include <memory>
#include <string>
#include <vector>

namespace program {
struct loaded_model {
  weft::train::model_files files;
  weft::model::config config;
  std::unique_ptr<weft::io::tokenizer> words;
  std::vector<float> weights, rope;  // [parameter_count], [positions, head_dim]
  weft::kernels::threads pool;
  weft::kernels::cpu_context on{&pool};

  explicit loaded_model(std::string const& folder)
      : files(folder, 0, false), config(files.config()), weights(weft::model::parameter_count(config)) {
    if (std::filesystem::exists(files.folder() / "tokenizer.json")) words = weft::io::read_tokenizer(files.folder());
    files.load(0, weights.data());
  }
  void hold_positions(std::size_t count) {  // the table covers so many
    if (rope.size() >= count * std::size_t(config.head_dim)) return;
    rope.resize(count * std::size_t(config.head_dim));
    weft::model::fill_rope_table(config, count, rope.data());
  }
};

inline weft::io::json number(float x) { return std::stod(fmt::format("{}", x)); }  // 0.1, not 0.10000000149011612
inline weft::io::json numbers(float const* from, std::size_t count) {
  weft::io::json::array list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(number(from[i]));
  return list;
}
inline weft::io::json ids_json(std::vector<weft::i32> const& ids) {
  weft::io::json::array list;
  for (weft::i32 id : ids) list.emplace_back(id);
  return list;
}
}  // namespace program
