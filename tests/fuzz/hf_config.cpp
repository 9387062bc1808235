// hf_config.cpp — a config that is taken has sizes within the limits, and written back it is the same model.
#include <weft/io/hf_config.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  return fuzz::refused_or_good([&] {
    auto const config = weft::io::parse_hf_config(weft::io::parse_json(text, "fuzz"), "fuzz");
    auto const& m = config.model;
    for (int extent : {m.layers, m.hidden, m.intermediate, m.heads, m.kv_heads, m.head_dim, m.vocab, m.max_positions})
      fuzz::demand(extent > 0);
    fuzz::demand(m.heads % m.kv_heads == 0 && m.head_dim % 2 == 0);
    fuzz::demand(m.rms_norm_eps > 0 && m.rope_theta >= 1);
    fuzz::demand(weft::io::parse_hf_config(config.found, "again").model == m);
    if (m.rope.type != weft::model::rope_scaling::none) return;
    fuzz::demand(weft::io::parse_hf_config(weft::io::hf_config_json(m, config.model_type, config.eos_ids), "new").model == m);
  });
}
