#include <doctest/doctest.h>

#include "support.hpp"

using namespace test;

namespace {
config rotary(i32 head_dim, f32 theta, model::rope_scaling rope) {
  config c;
  c.head_dim = head_dim, c.rope_theta = theta, c.rope = rope, c.max_positions = 131072;
  return c;
}
struct expected {
  i32 pair;
  double frequency;
};
}  // namespace

// The expected numbers are those of transformers' modeling_rope_utils, evaluated in double.
TEST_CASE("scaled frequencies are those of transformers") {
  auto const near = [](double x) { return doctest::Approx(x).epsilon(1e-12); };
  SUBCASE("default and linear") {
    config c = rotary(64, 10000, {});
    CHECK(model::rope_frequency(c, 0) == near(1));
    CHECK(model::rope_frequency(c, 16) == near(0.01));
    c.rope.type = model::rope_scaling::linear, c.rope.factor = 4;
    CHECK(model::rope_frequency(c, 16) == near(0.0025));
    CHECK(model::rope_attention_factor(c.rope) == 1);
  }
  SUBCASE("llama3, as Llama 3.1 has it") {
    config const c = rotary(128, 500000, {.type = model::rope_scaling::llama3, .factor = 8, .original_max_positions = 8192});
    for (expected e : {expected{0, 1.0},
                       {28, 0.0032114459947525913},
                       {29, 0.002166570763503359},
                       {30, 0.0013718935677611381},
                       {32, 0.0005248461609929547},
                       {34, 0.00017850781276799638},
                       {35, 9.556212353964683e-05},
                       {40, 3.428102195952591e-05},
                       {63, 3.068925988914511e-07}}) {
      CAPTURE(e.pair);
      CHECK(model::rope_frequency(c, e.pair) == near(e.frequency));
    }
  }
  SUBCASE("yarn, as Qwen 2.5 has it") {
    config const c = rotary(128, 1000000, {.type = model::rope_scaling::yarn, .factor = 4, .original_max_positions = 32768});
    for (expected e : {expected{0, 1.0},
                       {20, 0.01333521432163324},
                       {23, 0.006978305848598663},
                       {30, 0.0010643609812470017},
                       {35, 0.0002462584069089387},
                       {40, 4.445698525097307e-05},
                       {63, 3.102344401879299e-07}}) {
      CAPTURE(e.pair);
      CHECK(model::rope_frequency(c, e.pair) == near(e.frequency));
    }
    CHECK(model::rope_attention_factor(c.rope) == near(1.138629436111989));
  }
  SUBCASE("yarn without rounding, with its other factors") {
    config c = rotary(64, 10000, {.type = model::rope_scaling::yarn, .factor = 16, .original_max_positions = 4096, .truncate = false});
    for (expected e : {expected{0, 1.0},
                       {10, 0.056234132519034905},
                       {15, 0.008634272965535735},
                       {20, 0.0008164706233662651},
                       {31, 8.334508951020775e-06}}) {
      CAPTURE(e.pair);
      CHECK(model::rope_frequency(c, e.pair) == near(e.frequency));
    }
    c.rope.mscale = 1, c.rope.mscale_all_dim = 0.5f;
    CHECK(model::rope_attention_factor(c.rope) == near((0.1 * std::log(16.0) + 1) / (0.05 * std::log(16.0) + 1)));
    c.rope.attention_factor = 1.5f;
    CHECK(model::rope_attention_factor(c.rope) == 1.5);
  }
}

TEST_CASE("the table holds cosines, then sines, times the attention factor") {
  config const c = rotary(8, 10000, {.type = model::rope_scaling::yarn, .factor = 4, .original_max_positions = 64, .attention_factor = 2});
  std::vector<double> table(100 * 8);
  model::fill_rope_table(c, 100, table.data());
  for (i32 pair = 0; pair < 4; ++pair)
    for (size_t p : {size_t(0), size_t(1), size_t(99)}) {
      CHECK(table[p * 8 + size_t(pair)] == doctest::Approx(2 * std::cos(double(p) * model::rope_frequency(c, pair))));
      CHECK(table[p * 8 + 4 + size_t(pair)] == doctest::Approx(2 * std::sin(double(p) * model::rope_frequency(c, pair))));
    }
}
