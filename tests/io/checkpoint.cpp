// checkpoint.cpp — a checkpoint is whole or is not there: killed at every point, torn, flipped, on a full disk.
#include <weft/io/checkpoint.hpp>

#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;

namespace {
struct lab {
  io_test::temporary_folder folder;
  path at = folder / "checkpoints";
  std::vector<float> weights = std::vector<float>(10'000), moments = std::vector<float>(5'000);
  std::vector<std::string> said;

  path of(int step) const { return at / fmt::format("global_step_{}", step); }
  void save(int step, std::size_t keep = 0) {
    for (auto& w : weights) w = static_cast<float>(step);
    for (auto& m : moments) m = -static_cast<float>(step);
    std::vector<blob> const blobs{{"actor.weights", weights.data(), weights.size() * 4}, {"actor.m", moments.data(), moments.size() * 4}};
    save_checkpoint(at, step, blobs, json::object{{"cursor", step * 10}}, keep);
  }
  std::optional<loaded_checkpoint> load() {  // and all values must be those of its step
    said.clear();
    weights.assign(weights.size(), 0), moments.assign(moments.size(), 0);
    std::vector<place> const places{{"actor.m", moments.data(), moments.size() * 4}, {"actor.weights", weights.data(), weights.size() * 4}};
    auto found = load_checkpoint(at, places, [&](std::string const& line) { said.push_back(line); });
    if (found) {
      for (float w : weights) CHECK_EQ(w, static_cast<float>(found->step));
      for (float m : moments) CHECK_EQ(m, -static_cast<float>(found->step));
      CHECK(integer_of(found->state, "cursor", 0, 1000, "state") == found->step * 10);
    }
    return found;
  }
  std::size_t entries() const {
    std::size_t n = 0;
    for ([[maybe_unused]] auto& e : std::filesystem::directory_iterator(at)) ++n;
    return n;
  }
};
void flip(path const& file, std::size_t byte) {
  std::string text = io_test::read(file);
  text[byte] = static_cast<char>(text[byte] ^ 1);
  std::ofstream(file, std::ios::binary) << text;
}
}  // namespace

TEST_CASE("checkpoint: what was saved is loaded, the newest by number, the older ones pruned") {
  lab l;
  CHECK(!l.load());
  for (int step : {2, 9, 10}) l.save(step);
  CHECK(l.load()->step == 10);
  CHECK(l.said.empty());
  CHECK(checkpoint_steps(l.at) == std::vector<std::int64_t>{10, 9, 2});
  std::filesystem::last_write_time(l.of(2), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(l.load()->step == 10);
  l.save(11, 2);
  CHECK(checkpoint_steps(l.at) == std::vector<std::int64_t>{11, 10});
  l.save(11, 2);  // once more the same step
  CHECK(l.load()->step == 11);
  CHECK(l.entries() == 2);
}

TEST_CASE("checkpoint: damage of any kind is reported and the one before is loaded") {
  using damage = std::function<void(lab&)>;
  std::vector<std::pair<damage, char const*>> const kinds{
      {[](lab& l) { flip(l.of(2) / "actor.weights.bin", 12'345); }, "its checksum does not fit"},
      {[](lab& l) { flip(l.of(2) / "manifest", 40); }, "manifest: its checksum does not fit"},
      {[](lab& l) { std::filesystem::resize_file(l.of(2) / "actor.m.bin", 100); }, "has 100 bytes, not 20000"},
      {[](lab& l) { std::filesystem::resize_file(l.of(2) / "actor.m.bin", 0); }, "has 0 bytes"},
      {[](lab& l) { std::filesystem::resize_file(l.of(2) / "manifest", 50); }, "its checksum does not fit"},
      {[](lab& l) { std::filesystem::resize_file(l.of(2) / "manifest", 0); }, "too short for a manifest"},
      {[](lab& l) { std::filesystem::remove(l.of(2) / "actor.weights.bin"); }, "cannot open"},
      {[](lab& l) { std::filesystem::remove(l.of(2) / "manifest"); }, "cannot open"},
      {[](lab& l) { std::filesystem::remove_all(l.of(2)), std::filesystem::create_directory(l.of(2)); }, "cannot open"},
      {[](lab& l) { std::filesystem::rename(l.of(2), l.of(3)); }, "it is of step 2"},
  };
  for (auto const& [hurt, message] : kinds) {
    lab l;
    l.save(1), l.save(2);
    hurt(l);
    CHECK(l.load()->step == 1);
    REQUIRE(l.said.size() == 1);
    CHECK_MESSAGE(io_test::has(l.said[0], message), "wanted: ", message, "; said: ", l.said[0]);
    CHECK(io_test::has(l.said[0], "is damaged and was skipped"));
  }
  lab l;
  l.save(1);
  flip(l.of(1) / "actor.m.bin", 0);
  CHECK_REFUSED(l.load(), "none of the 1 checkpoints in");
}

TEST_CASE("checkpoint: another configuration is refused by name, not skipped") {
  lab l;
  l.save(1);
  l.weights.resize(10'001);
  CHECK_REFUSED(l.load(), "actor.weights has 40000 bytes, but this configuration needs 40004");
  float x = 0;
  place const other{"critic.weights", &x, 4};
  CHECK_REFUSED(load_checkpoint(l.at, {&other, 1}, {}), "has no critic.weights; it was made by another configuration");
}

TEST_CASE("checkpoint: killed at any point, the newest whole one is there, and the next save cleans up") {
  for (auto const& [where, step] :
       {std::pair("checkpoint_blob:1", 1), std::pair("checkpoint_blob:2", 1), std::pair("checkpoint_manifest:1", 1),
        std::pair("checkpoint_rename:1", 1), std::pair("checkpoint_prune:1", 2)}) {
    lab l;
    l.save(1, 1);
    int const status = io_test::in_child([&] {
      ::setenv("WEFT_KILL_AT", where, 1);
      l.save(2, 1);
    });
    CHECK(io_test::was_killed(status));
    CHECK(l.load()->step == step);
    CHECK(l.said.empty());
    l.save(3, 1);
    CHECK(l.load()->step == 3);
    CHECK(l.entries() == 1);
  }
}

TEST_CASE("checkpoint: a full disk is an error that leaves the last one and no temporary files") {
  lab l;
  l.save(1, 1);
  int const status = io_test::in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit const small{30'000, 30'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    l.save(2, 1);
  });
  CHECK(io_test::has_refused(status));
  CHECK(l.load()->step == 1);
  CHECK(l.entries() == 1);
}

TEST_CASE("checkpoint: saving copies nothing") {
  lab l;
  l.weights.resize(4'000'000);
  allocation::start();
  l.save(1);
  CHECK(allocation::largest() < 100'000);
}

TEST_CASE("checkpoint: hostile manifests") {
  auto text = [](std::string const& body) { return body + fmt::format("{:08x}\n", crc32c(body.data(), body.size())); };
  auto with_blob = [&](std::string const& blob) {
    return text(R"({"format":"weft checkpoint","version":1,"step":1,"state":{},"blobs":[)" + blob + "]}");
  };
  CHECK(parse_manifest(with_blob(R"({"name":"a","bytes":1,"crc32c":2})"), "m").blobs.size() == 1);
  CHECK_REFUSED(parse_manifest(with_blob(R"({"name":"../a","bytes":1,"crc32c":2})"), "m"), "'../a' is not the name of a blob");
  CHECK_REFUSED(parse_manifest(with_blob(R"({"name":"/a","bytes":1,"crc32c":2})"), "m"), "not the name of a blob");
  CHECK_REFUSED(parse_manifest(with_blob(R"({"name":"a","bytes":-1,"crc32c":2})"), "m"), "bytes is '-1'");
  CHECK_REFUSED(parse_manifest(with_blob(R"({"name":"a","bytes":1,"crc32c":4294967296})"), "m"), "crc32c is");
  CHECK_REFUSED(parse_manifest(text("[]"), "m"), "format is not");
  CHECK_REFUSED(parse_manifest(text(R"({"format":"weft checkpoint","version":2})"), "m"), "version is '2'");
  float x = 0;
  blob const bad{"a/b", &x, 4};
  io_test::temporary_folder folder;
  CHECK_REFUSED(save_checkpoint(folder.path, 1, {&bad, 1}, {}, 0), "'a/b' is not the name of a blob");
  CHECK(folder.entries() == 0);
}
