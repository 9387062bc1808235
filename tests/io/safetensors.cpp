// safetensors.cpp — round trips of every type, and each rule of the format broken once.
#include <weft/io/safetensors.hpp>

#include <cmath>
#include <limits>
#include <optional>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;

namespace {
std::string with_header(std::string const& header, std::size_t data_bytes, std::optional<u64> claimed = std::nullopt) {
  u64 const length = claimed.value_or(header.size());
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\1');
}
std::string entry(std::string const& name, char const* type, std::string const& shape, u64 begin, u64 end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, type, shape, begin, end);
}
}  // namespace

TEST_CASE("safetensors: 16-bit conversions round to nearest even, and every value survives the way up and down") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    auto const b = static_cast<std::uint16_t>(bits);
    float const from_half = to_float(f16{b}), from_bf16 = to_float(weft::bf16{b});
    if (from_half == from_half) CHECK_EQ(to_f16(from_half).bits, b);
    else CHECK(to_float(to_f16(from_half)) != to_float(to_f16(from_half)));
    if (from_bf16 == from_bf16) CHECK_EQ(to_bf16(from_bf16).bits, b);
    else CHECK(to_float(to_bf16(from_bf16)) != to_float(to_bf16(from_bf16)));
#if defined(__FLT16_MANT_DIG__)
    if (from_half == from_half) CHECK_EQ(from_half, static_cast<float>(std::bit_cast<_Float16>(b)));
#endif
  }
  std::uint32_t bits = 1;
  for (int i = 0; i < 200'000; ++i) {  // the nearest of the neighbours, ties to the even one
    bits = bits * 1664525u + 1013904223u;
    float const x = std::bit_cast<float>(bits);
    if (!(std::fabs(x) < 3e38f)) continue;
    auto const down = static_cast<std::uint16_t>(bits >> 16);
    float const low = to_float(weft::bf16{down}), high = to_float(weft::bf16{static_cast<std::uint16_t>(down + 1)});
    double const a = std::fabs(double(x) - low), b = std::fabs(double(high) - x);
    std::uint16_t const want = a < b || (a == b && down % 2 == 0) ? down : static_cast<std::uint16_t>(down + 1);
    CHECK_EQ(to_bf16(x).bits, want);
#if defined(__FLT16_MANT_DIG__)
    float const small = std::ldexp(x, -static_cast<int>(std::ilogb(x)) + static_cast<int>(bits % 42) - 26);
    CHECK_EQ(to_f16(small).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(small)));
#endif
  }
  CHECK(to_f16(65519.0f).bits == 0x7bff);
  CHECK(to_f16(65520.0f).bits == 0x7c00);
  CHECK(to_bf16(std::numeric_limits<float>::infinity()).bits == 0x7f80);
}

TEST_CASE("safetensors: what is written is read back, whole and in part, in float and double") {
  io_test::temporary_folder folder;
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8 - 5;
  std::vector<double> const doubles(values.begin(), values.end());
  std::vector<std::int64_t> const wide{1, -2, 3};
  std::vector<std::int32_t> const ids{7, 8};
  float const one = 2.5f;
  path const file = folder / "t.safetensors";
  write_safetensors(file, {{"b", dtype::F32, {1000, 100}, values.data()},
                           {"a", dtype::BF16, {100, 1000}, values.data()},
                           {"h", dtype::F16, {100'000}, doubles.data()},
                           {"wide", dtype::I64, {3}, wide.data()},
                           {"ids", dtype::I32, {2}, ids.data()},
                           {"empty", dtype::F32, {0, 5}, values.data()},
                           {"scalar", dtype::F32, {}, &one}});
  safetensors_file const in(file);
  CHECK(in.tensors().size() == 7);
  CHECK(in.metadata().at("format") == "pt");
  CHECK(in.read<float>("b") == values);
  CHECK(in.read<double>("b") == doubles);
  CHECK(in.read<std::int32_t>("wide") == std::vector<std::int32_t>{1, -2, 3});
  CHECK(in.read<std::int64_t>("ids") == std::vector<std::int64_t>{7, 8});
  CHECK(in.read<float>("empty").empty());
  CHECK(in.read<float>("scalar") == std::vector<float>{2.5f});
  auto const a = in.read<float>("a"), h = in.read<float>("h");
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK_EQ(a[i], to_float(to_bf16(values[i])));
    CHECK_EQ(h[i], to_float(to_f16(values[i])));
  }
  std::vector<float> rows(2 * 1000);
  in.read(in.at("a"), 40 * 1000, rows.size(), rows.data());
  CHECK(std::equal(rows.begin(), rows.end(), a.begin() + 40'000));
  CHECK(in.at("wide").begin == 0);  // falling alignment, then name
  CHECK(in.at("b").begin < in.at("ids").begin);
  CHECK(in.at("ids").begin < in.at("a").begin);
  CHECK_REFUSED(in.at("gone"), "tensor 'gone' is missing");
  CHECK_REFUSED(in.read<std::int32_t>("b"), "integers were expected");
  CHECK_REFUSED(in.read<float>("ids"), "real numbers were expected");
  CHECK_REFUSED(in.read(in.at("a"), 99'999, 2, rows.data()), "asked for 2 from 99999 on");
  CHECK(folder.entries() == 1);
}

TEST_CASE("safetensors: a value that does not fit 32 bits is refused") {
  io_test::temporary_folder folder;
  std::int64_t const big = std::int64_t{1} << 40;
  write_safetensors(folder / "t", {{"x", dtype::I64, {1}, &big}});
  CHECK_REFUSED(safetensors_file(folder / "t").read<std::int32_t>("x"), "1099511627776, which does not fit");
}

TEST_CASE("safetensors: each broken rule is refused by file, tensor and rule, and takes no memory") {
  io_test::temporary_folder folder;
  path const file = folder / "bad.safetensors";
  std::string const good = "{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "F32", "[1]", 8, 12) + "}";
  struct attack {
    std::string bytes;
    char const* message;
  };
  u64 const half = u64{1} << 63;
  std::vector<attack> const attacks{
      {"", "too few"},
      {"1234567", "too few"},
      {with_header("", 0), "does not begin with '{'"},
      {with_header(" " + good, 12), "does not begin with '{'"},
      {with_header(good, 11), "cut short"},
      {with_header(good, 13), "too long"},
      {with_header(good, 12, good.size() + 13), "it is cut short"},
      {with_header(good, 12, good.size() - 1), "not valid JSON"},
      {with_header(good, 12, half), "claims 9223372036854775808 bytes; the limit is 100000000"},
      {with_header(good, 12, 100'000'001), "the limit is 100000000"},
      {with_header("{\xff}", 0), "not valid JSON"},
      {with_header("[]", 0), "does not begin"},
      {with_header("{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "F32", "[1]", 4, 8) + "}", 8), "they overlap"},
      {with_header("{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "F32", "[2]", 0, 8) + "}", 8), "they overlap"},
      {with_header("{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "F32", "[1]", 12, 16) + "}", 16), "there is a hole"},
      {with_header("{" + entry("a", "F32", "[1]", 4, 8) + "}", 8), "there is a hole"},
      {with_header("{" + entry("a", "F32", "[2]", 8, 0) + "}", 8), "do not hold the 8 bytes"},
      {with_header("{" + entry("a", "F32", "[3]", 0, 8) + "}", 8), "do not hold the 12 bytes"},
      {with_header("{" + entry("a", "F32", "[4611686018427387904,4]", 0, 8) + "}", 8), "the product of its shape overflows"},
      {with_header("{" + entry("a", "F32", "[9223372036854775807]", 0, 8) + "}", 8), "overflows"},
      {with_header("{" + entry("a", "F32", "[18446744073709551615]", 0, 8) + "}", 8), "not a size"},
      {with_header("{" + entry("a", "F32", "[-1]", 0, 8) + "}", 8), "not a size"},
      {with_header("{" + entry("a", "F32", "[2.0]", 0, 8) + "}", 8), "not a size"},
      {with_header("{" + entry("a", "F32", "2", 0, 8) + "}", 8), "shape must be a list"},
      {with_header("{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) + "}", 8), "at most 8"},
      {with_header("{" + entry("a", "F31", "[2]", 0, 8) + "}", 8), "dtype '\"F31\"' is unknown"},
      {with_header("{" + entry("a", "F4", "[3]", 0, 1) + "}", 1), "not a whole number of bytes"},
      {with_header("{" + entry("a", "F32", "[2]", 0, half + 8) + "}", 8), "two offsets"},
      {with_header("{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("a", "F32", "[2]", 0, 8) + "}", 8), "'a' stands twice"},
      {with_header("{" + entry(std::string(1025, 'x'), "F32", "[2]", 0, 8) + "}", 8), "the name has 1025 bytes"},
      {with_header(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "data_offsets is missing"},
      {with_header(R"({"a":[]})", 0), "dtype is missing"},
      {with_header(R"({"__metadata__":{"a":1}})", 0), "is not a string"},
      {with_header(R"({"__metadata__":[]})", 0), "an object of strings"},
      {with_header("{" + std::string(1000, '[') + "}", 0), "not valid JSON"},
      {with_header("{\"a\":" + std::string(1000, '['), 0), "nested deeper than 4"},
  };
  for (auto const& [bytes, message] : attacks) {
    io_test::overwrite(file, bytes);
    allocation::start();
    std::string const said = io_test::refusal([&] { safetensors_file const in(file); });
    CHECK_MESSAGE(io_test::has(said, message), "wanted: ", message, "; refusal: ", said);
    CHECK(io_test::has(said, "bad.safetensors"));
    CHECK(allocation::largest() < 100'000);
  }
  io_test::overwrite(file, with_header(good + "    ", 12));
  CHECK(safetensors_file(file).tensors().size() == 2);
  io_test::overwrite(file, with_header("{}", 0));
  CHECK(safetensors_file(file).tensors().empty());
}

TEST_CASE("safetensors: a file that shrinks after it was opened is an error, not a crash") {
  io_test::temporary_folder folder;
  std::vector<float> const values(100'000, 1.0f);
  write_safetensors(folder / "t", {{"x", dtype::F32, {100'000}, values.data()}});
  safetensors_file const in(folder / "t");
  std::filesystem::resize_file(folder / "t", 5000);
  CHECK_REFUSED(in.read<float>("x"), "too early; was it cut short?");
  CHECK_REFUSED(in.read<double>("x"), "too early; was it cut short?");
}

TEST_CASE("safetensors: a failed write leaves the older file as it was") {
  io_test::temporary_folder folder;
  float const one = 1;
  std::int64_t const id = 1;
  write_safetensors(folder / "t", {{"x", dtype::F32, {1}, &one}});
  std::string const before = io_test::read(folder / "t");
  CHECK_REFUSED(write_safetensors(folder / "t", {{"x", dtype::F32, {1}, &one}, {"y", dtype::F32, {1}, &id}}),
                "tensor 'y' cannot be written as F32");
  CHECK(io_test::read(folder / "t") == before);
  CHECK(folder.entries() == 1);
}
