// hf_shards.cpp — weights in several files are those of one file, a part of them costs the bytes of that part, and each rule of the index
// broken once is refused.
#include <weft/io/hf_shards.hpp>

#include <cstdio>
#include <numeric>

#include <weft/io/hf_model.hpp>

#include "helper.hpp"
#include "model/support.hpp"

using namespace weft::io;
namespace model = weft::model;

namespace {
std::string const index_name = "model.safetensors.index.json";

long bytes_read() {  // by this process, through read and pread
  std::FILE* const from = std::fopen("/proc/self/io", "r");
  REQUIRE(from);
  long bytes = -1;
  int const found = std::fscanf(from, "rchar: %ld", &bytes);
  std::fclose(from);
  REQUIRE(found == 1);
  return bytes;
}
json read_index(path const& folder) { return parse_json(io_test::read(folder / index_name), index_name); }
void change(path const& folder, auto const& how) {
  json root = read_index(folder);
  how(root);
  io_test::overwrite(folder / index_name, root.dump());
}
void set_in(json& root, char const* object, std::string const& key, json value) {
  json inner = *root.find(object);
  inner.set(key, std::move(value));
  root.set(object, std::move(inner));
}
}  // namespace

TEST_CASE("hf_shards: several files hold what one file holds, for every family and size of a file") {
  for (test::family const& f : test::families())
    for (u64 most : {u64{1}, u64{10'000}, u64{40'000}}) {
      CAPTURE(f.name);
      io_test::temporary_folder folder;
      std::vector<float> const w = test::random_weights<float>(f.c, 5);
      write_hf_weights(folder.path, f.c, w.data(), dtype::F32, most);
      CHECK(hf_shards(folder.path).files() > 1);
      CHECK(!std::filesystem::exists(folder / "model.safetensors"));
      std::vector<float> again(w.size());
      hf_weights(folder.path, f.c).read(again.data());
      CHECK(test::same_bits(again, w));
      u64 total = 0;
      hf_shards const set(folder.path);
      set.for_each([&](tensor_info const& t) { total += t.end - t.begin; });
      CHECK(read_index(folder.path).find("metadata")->find("total_size")->to_unsigned() == total);
    }
}

TEST_CASE("hf_shards: parts of the arena add up to all of it, and each costs its own bytes and no more") {
  model::config const c = test::families()[0].c;
  std::vector<float> const w = test::random_weights<float>(c, 5);
  for (u64 most : {u64{10'000}, shard_bytes}) {
    io_test::temporary_folder folder;
    write_hf_weights(folder.path, c, w.data(), dtype::F32, most);
    hf_weights const files(folder.path, c);
    long const before = bytes_read(), cost = bytes_read() - before;  // of looking
    for (std::size_t ranks : {1, 2, 3, 7}) {
      std::vector<float> parts(w.size());
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::size_t const first = w.size() * rank / ranks, end = w.size() * (rank + 1) / ranks;
        long const from = bytes_read();
        files.read(first, end - first, parts.data() + first);
        long const took = bytes_read() - from - cost;
        std::size_t held = 0;  // elements of tensors in this part; the rest is gaps
        model::for_each_tensor(c, [&](model::tensor const& t) {
          std::size_t const a = std::max(first, t.offset), b = std::min(end, t.offset + t.size());
          held += a < b ? b - a : 0;
        });
        CHECK(std::labs(took - static_cast<long>(held * sizeof(float))) <= 8);  // the text of /proc/self/io may grow by a digit
      }
      CHECK(test::same_bits(parts, w));
    }
  }
}

TEST_CASE("hf_shards: each broken rule of an index is refused") {
  model::config const c = test::families()[0].c;
  std::vector<float> const w = test::random_weights<float>(c, 5);
  io_test::temporary_folder folder;
  write_hf_weights(folder.path, c, w.data(), dtype::F32, 10'000);
  std::string const norm = "model.norm.weight";
  json const good = read_index(folder.path);
  std::string const holder = *good.find("weight_map")->find(norm)->as_string(), first = "model-00001-of-";
  auto const said = [&] { return io_test::refusal([&] { hf_weights const in(folder.path, c); }); };
  REQUIRE(said() == "");

  for (char const* name : {"../"
                           "model.safetensors",
                           "/etc/x.safetensors", "a/b.safetensors", "a\\b.safetensors", "..", "", ".safetensors", "model.bin",
                           "a\nb.safetensors", "a\0b.safetensors"}) {
    change(folder.path, [&](json& root) { set_in(root, "weight_map", norm, name); });
    CHECK_MESSAGE(io_test::has(said(), "it must be the name of a .safetensors file in the same folder"), said());
  }
  io_test::overwrite(folder / index_name, good.dump());
  change(folder.path, [&](json& root) { set_in(root, "weight_map", norm, 3); });
  CHECK(io_test::has(said(), "weight_map of 'model.norm.weight' is '3'; it must be a file name"));
  io_test::overwrite(folder / index_name, good.dump());
  change(folder.path, [&](json& root) { set_in(root, "weight_map", norm, "gone.safetensors"); });
  CHECK(io_test::has(said(), "gone.safetensors: No such file"));
  io_test::overwrite(folder / index_name, good.dump());
  change(folder.path, [&](json& root) { set_in(root, "weight_map", "more.weight", holder); });
  CHECK(io_test::has(said(), "tensor 'more.weight' is missing in " + holder));
  io_test::overwrite(folder / index_name, good.dump());
  std::string other = holder;
  for (auto const& entry : *good.find("weight_map")->as_object())
    if (*entry.second.as_string() != holder) other = *entry.second.as_string();
  change(folder.path, [&](json& root) { set_in(root, "weight_map", norm, other); });
  CHECK(io_test::has(said(), "weight_map says " + other));
  for (json lie : {json(0), json(1), json(std::int64_t{1} << 40)}) {
    io_test::overwrite(folder / index_name, good.dump());
    change(folder.path, [&](json& root) { set_in(root, "metadata", "total_size", lie); });
    CHECK(io_test::has(said(), "metadata.total_size is " + lie.dump() + ", but the tensors have"));
  }
  for (auto const& [text, message] : std::vector<std::pair<std::string, char const*>>{
           {"[]", "must be a JSON object"},
           {"{}", "weight_map is missing"},
           {R"({"weight_map":[]})", "weight_map must be an object"},
           {R"({"weight_map":{}})", "weight_map must be an object"},
           {R"({"weight_map":{"a":"x.safetensors","a":"x.safetensors"}})", "'a' stands twice"},
           {R"({"metadata":[],"weight_map":{"a":"x.safetensors"}})", "metadata must be an object"},
           {R"({"metadata":{"total_size":-1},"weight_map":{"a":"x.safetensors"}})", "total_size is '-1'"},
           {"{", "not valid JSON"}}) {
    io_test::overwrite(folder / index_name, text);
    CHECK_MESSAGE(io_test::has(said(), message), said());
  }
  json unlisted = good;
  json::object fewer;
  for (auto const& entry : *good.find("weight_map")->as_object())
    if (entry.first != norm) fewer.push_back(entry);
  unlisted.set("weight_map", std::move(fewer));
  io_test::overwrite(folder / index_name, unlisted.dump());
  CHECK(io_test::has(said(), "tensor 'model.norm.weight' of " + holder + " is not in weight_map"));

  json::object many;
  for (int i = 0; i < 1001; ++i) many.emplace_back(fmt::format("t{}", i), fmt::format("{}.safetensors", i));
  io_test::overwrite(folder / index_name, json(json::object{{"weight_map", std::move(many)}}).dump());
  CHECK(io_test::has(said(), "1001 files; the limit is 1000"));

  io_test::overwrite(folder / index_name, good.dump());
  CHECK(said() == "");
  std::filesystem::resize_file(folder / holder, std::filesystem::file_size(folder / holder) - 1);
  CHECK(io_test::has(said(), "cut short"));
}
