// checkpoint.hpp — the whole state of a run at a step, as one folder that either is complete or does not exist.
//   FOLDER/global_step_N/NAME.bin   named bytes (weights, moments, ...)
//   FOLDER/global_step_N/manifest   JSON: step, state, and name, bytes and crc32c of each blob; then one line with the crc32c of that JSON
// Saving writes under a temporary name, syncs every file and the folder, renames, syncs the parent, and only then removes older ones.
// Loading goes from the newest step down: one that is torn or corrupt is reported and skipped. If there are checkpoints and none is whole,
// that is an error: a run never starts over silently. Which step is newest is told by the names, never by file times.
#pragma once
#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/io/json.hpp>
#include <weft/io/kill_point.hpp>

namespace weft::io {
template <class Byte> struct named_bytes {
  std::string name;  // letters, digits, '.', '_' and '-'
  Byte* data;
  std::size_t bytes;
};
using blob = named_bytes<void const>;  // to save
using place = named_bytes<void>;       // where to load

struct loaded_checkpoint {
  std::int64_t step = 0;
  json state;
  path folder;
};

inline constexpr std::string_view step_prefix = "global_step_";

namespace detail {
inline std::optional<std::int64_t> step_of(std::string const& name) {
  std::int64_t step = -1;
  if (!name.starts_with(step_prefix)) return std::nullopt;
  auto const [end, failed] = std::from_chars(name.data() + step_prefix.size(), name.data() + name.size(), step);
  return failed == std::errc() && end == name.data() + name.size() && step >= 0 ? std::optional(step) : std::nullopt;
}
inline bool is_blob_name(std::string_view name) {
  constexpr std::string_view good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 200 && name[0] != '.' && name.find_first_not_of(good) == name.npos;
}
inline void write_synced(path const& file, void const* from, std::size_t bytes) {
  descriptor const fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.get() < 0) refuse_file("create", file);
  write_all(fd, file, from, bytes);
  sync(fd, file);
}
struct remove_on_failure {  // a half-written folder does not outlive the attempt
  path folder;
  ~remove_on_failure() {
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
  }
};
}  // namespace detail

struct manifest {
  struct entry {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
  };
  std::int64_t step = 0;
  json state;
  std::vector<entry> blobs;
};

inline std::string manifest_text(manifest const& m) {
  json::array blobs;
  for (auto& b : m.blobs) blobs.push_back(json::object{{"name", b.name}, {"bytes", b.bytes}, {"crc32c", std::uint64_t{b.crc}}});
  std::string text =
      json(json::object{{"format", "weft checkpoint"}, {"version", 1}, {"step", m.step}, {"state", m.state}, {"blobs", std::move(blobs)}})
          .dump(1) +
      "\n";
  return text + fmt::format("{:08x}\n", crc32c(text.data(), text.size()));
}
inline manifest parse_manifest(std::string_view text, std::string const& where) {
  if (text.size() < 9) refuse("{}: too short for a manifest", where);
  std::string_view const body = text.substr(0, text.size() - 9);
  if (text.substr(body.size()) != fmt::format("{:08x}\n", crc32c(body.data(), body.size()))) refuse("{}: its checksum does not fit", where);
  json const root = parse_json(body, where);
  manifest m;
  if (string_or(root, "format", "", where) != "weft checkpoint") refuse("{}: format is not 'weft checkpoint'", where);
  integer_of(root, "version", 1, 1, where);
  m.step = integer_of(root, "step", 0, INT64_MAX, where);
  m.state = root.at("state", where);
  json const& blobs = root.at("blobs", where);
  if (!blobs.as_array()) refuse("{}: blobs must be a list", where);
  for (json const& b : *blobs.as_array()) {
    manifest::entry entry{string_or(b, "name", "", where), static_cast<std::uint64_t>(integer_of(b, "bytes", 0, INT64_MAX, where)),
                          static_cast<std::uint32_t>(integer_of(b, "crc32c", 0, UINT32_MAX, where))};
    if (!detail::is_blob_name(entry.name)) refuse("{}: {} is not the name of a blob", where, show(entry.name));
    m.blobs.push_back(std::move(entry));
  }
  return m;
}

inline std::vector<std::int64_t> checkpoint_steps(path const& folder) {  // the newest first
  std::vector<std::int64_t> steps;
  std::error_code missing;
  for (auto const& entry : std::filesystem::directory_iterator(folder, missing))
    if (auto const step = detail::step_of(entry.path().filename().string())) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

// Keeps the `keep` newest; 0: all. The caller holds the folder's lock (lock.hpp).
inline void save_checkpoint(path const& folder, std::int64_t step, std::span<blob const> blobs, json const& state, std::size_t keep) {
  make_folder(folder);
  path const target = folder / fmt::format("{}{}", step_prefix, step), temporary = folder / fmt::format(".tmp_{}{}", step_prefix, step);
  for (auto const& entry : std::filesystem::directory_iterator(folder))  // what a crash left
    if (entry.path().filename().string().starts_with(".tmp_")) std::filesystem::remove_all(entry.path());
  make_folder(temporary);
  detail::remove_on_failure unfinished{temporary};
  manifest m{step, state, {}};
  for (blob const& b : blobs) {
    if (!detail::is_blob_name(b.name)) refuse("{} is not the name of a blob", show(b.name));
    kill_point("checkpoint_blob");
    detail::write_synced(temporary / (b.name + ".bin"), b.data, b.bytes);
    m.blobs.push_back({b.name, b.bytes, crc32c(b.data, b.bytes)});
  }
  std::string const text = manifest_text(m);
  kill_point("checkpoint_manifest");
  detail::write_synced(temporary / "manifest", text.data(), text.size());
  sync_folder(temporary);
  kill_point("checkpoint_rename");
  // a plain rename where nothing is replaced: network file systems know no other
  bool const replaces = std::filesystem::exists(target);
  if ((replaces ? ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE)
                : ::rename(temporary.c_str(), target.c_str())) != 0)
    refuse_file("rename to", target);
  sync_folder(folder);
  kill_point("checkpoint_prune");
  auto const steps = checkpoint_steps(folder);
  for (std::size_t i = keep == 0 ? steps.size() : keep; i < steps.size(); ++i)
    if (steps[i] < step) std::filesystem::remove_all(folder / fmt::format("{}{}", step_prefix, steps[i]));
}

namespace detail {
// The places are filled in the order given; a failure leaves them half filled, and the next older checkpoint fills them anew.
inline loaded_checkpoint load_one(path const& from, std::int64_t step, std::span<place const> places) {
  path const file = from / "manifest";
  manifest const m = parse_manifest(read_file(file, 64 << 20), file.string());
  if (m.step != step) refuse("{}: it is of step {}", file.string(), m.step);
  for (place const& p : places) {
    path const data = from / (p.name + ".bin");
    auto const entry = std::find_if(m.blobs.begin(), m.blobs.end(), [&](auto& b) { return b.name == p.name; });
    descriptor const fd = open_read(data);
    std::uint64_t const bytes = size_of(fd, data);
    if (bytes != entry->bytes) refuse("{} has {} bytes, not {}", data.string(), bytes, entry->bytes);
    read_at(fd, data, 0, p.data, p.bytes);
    if (crc32c(p.data, p.bytes) != entry->crc) refuse("{}: its checksum does not fit", data.string());
  }
  return {step, m.state, from};
}
// What a run asks for must be what the checkpoint has: a difference is another configuration, not damage.
inline void check_fit(path const& from, std::span<place const> places) {
  path const file = from / "manifest";
  manifest m;
  try {
    m = parse_manifest(read_file(file, 64 << 20), file.string());
  } catch (input_error const&) {
    return;  // damage, which load_one() reports
  }
  for (place const& p : places) {
    auto const entry = std::find_if(m.blobs.begin(), m.blobs.end(), [&](auto& b) { return b.name == p.name; });
    if (entry == m.blobs.end()) refuse("{} has no {}; it was made by another configuration: choose another folder", from.string(), p.name);
    if (entry->bytes != p.bytes)
      refuse("{}: {} has {} bytes, but this configuration needs {}; choose another folder or the configuration it was made with",
             from.string(), p.name, entry->bytes, p.bytes);
  }
}
}  // namespace detail

// Fills the places from the newest whole checkpoint; nothing when there is none at all. `say` is told of every one that was skipped.
inline std::optional<loaded_checkpoint> load_checkpoint(path const& folder, std::span<place const> places,
                                                        std::function<void(std::string const&)> const& say) {
  auto const steps = checkpoint_steps(folder);
  for (std::int64_t step : steps) {
    path const from = folder / fmt::format("{}{}", step_prefix, step);
    detail::check_fit(from, places);
    try {
      return detail::load_one(from, step, places);
    } catch (input_error const& damage) { say(fmt::format("checkpoint of step {} is damaged and was skipped: {}", step, damage.what())); }
  }
  if (!steps.empty()) refuse("none of the {} checkpoints in {} is whole; remove them to start anew", steps.size(), folder.string());
  return std::nullopt;
}

// Fills the places from one checkpoint, FOLDER/global_step_N, and from no other.
inline loaded_checkpoint load_checkpoint_at(path from, std::span<place const> places) {
  if (!from.has_filename()) from = from.parent_path();  // a slash at the end
  auto const step = detail::step_of(from.filename().string());
  if (!step || !std::filesystem::is_directory(from)) refuse("{} is no checkpoint; give a folder {}N", from.string(), step_prefix);
  detail::check_fit(from, places);
  return detail::load_one(from, *step, places);
}
}  // namespace weft::io
