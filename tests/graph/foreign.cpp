// Ports in memory of the host program: same numbers as in the arena, no bytes in the plan, and one line for what does not fit.
#include "weft/foreign.hpp"
#include "refused.hpp"
#include "weft/engine/cpu.hpp"
#include "weft/plan.hpp"
#include <doctest/doctest.h>
#include <vector>
namespace {
using weft::f32, weft::i32, weft::in, weft::inout, weft::next, weft::out;
struct row : weft::dim {};
struct column : weft::dim {};
struct turn : weft::part<row> {};
struct cut : weft::axis {};
struct pool : weft::pool<weft::split<cut, row>> {};
struct x : weft::port<f32, row, column> {};
struct middle : weft::port<f32, row> {};
struct y : weft::port<f32, row> {};
struct total : weft::port<f32> {};
struct seen : weft::port<i32, column> {};
struct add_up {
  static void run(in<x> a, out<middle> r) {
    for (size_t i = 0; i < r.count(); ++i) {
      r(i) = 0;
      for (size_t k = 0; k < a.extent<column>(); ++k) r(i) += a(i, k);
    }
  }
};
struct twice {
  static void run(in<middle> a, out<y> r) {
    for (size_t i = 0; i < r.count(); ++i) r(i) = 2 * a(i);
  }
};
struct remember {
  static void run(in<y> a, in<x>, next<total> t, next<seen> s) {
    for (f32 v : a) t() += v;
    for (i32& v : s) ++v;
  }
};
using sums = weft::graph<weft::feed<x>, weft::each<turn, add_up, twice>, remember, weft::keep<y>>;
using sums_split = weft::graph<weft::feed<x>, weft::at<pool, add_up>, twice, remember, weft::keep<y>>;

struct tensor {  // the fields of a DLTensor
  void* data;
  struct {
    int device_type, device_id;
  } device{1, 0};
  i32 ndim;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t const *shape, *strides;
  std::uint64_t byte_offset;
};
std::vector<f32> numbers() {
  std::vector<f32> v(12);
  for (size_t i = 0; i < v.size(); ++i) v[i] = f32(i * i % 7);
  return v;
}
template <class G> std::vector<f32> in_arena() {
  auto s = weft::bind<G>(weft::cpu{}, row{3}, column{4}, turn{2}, cut{3});
  auto const from = numbers();
  for (size_t i = 0; i < from.size(); ++i) s.template view_of<x>().flat(i) = from[i];
  s.template view_of<total>()() = 1;
  for (i32& v : s.template view_of<seen>()) v = 0;
  s.step(), s.step();
  std::vector<f32> all;
  for (f32 v : s.template view_of<y>()) all.push_back(v);
  all.push_back(s.template view_of<total>()());
  return all;
}
template <class G> void same_outside() {
  auto batch = numbers();
  std::vector<f32> results(3, -1);
  f32 sum = 1;
  std::vector<i32> counts(4, 0);
  std::int64_t const shape[] = {3};
  auto s = weft::bind<G>(weft::cpu{}, row{3}, column{4}, turn{2}, cut{3}, weft::foreign<x>(batch.data(), {3, 4}, {4, 1}),
                         weft::foreign<total>(&sum), weft::foreign<seen>(counts.data(), {4}),
                         weft::from_dlpack<y>(tensor{results.data(), {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0}));
  s.step(), s.step();  // state in foreign memory counts as loaded
  results.push_back(sum);
  CHECK(results == in_arena<G>());
  CHECK(counts == std::vector<i32>{2, 2, 2, 2});
  CHECK(s.template view_of<x>().data == batch.data());
  for (auto const& map : weft::memory_map(s))
    for (auto const& b : map.buffers)
      if (b.port == "x" || b.port == "total" || b.port == "seen" || b.port == "y") CHECK((b.bytes == 0 || b.note == "moved"));
}
std::string of(auto const& given) {
  return refused([&] { weft::bind<sums>(weft::cpu{}, row{3}, column{4}, turn{1}, given); });
}
}  // namespace

TEST_CASE("a step over foreign memory computes what it computes in the arena") {
  same_outside<sums>();
}

TEST_CASE("memory that does not fit its port is refused") {
  auto batch = numbers();
  f32 sum = 0;
  CHECK(refused([&] { weft::bind<sums_split>(weft::cpu{}, row{3}, column{4}, cut{3}, weft::foreign<total>(&sum)); }) ==
        "weft::bind: the foreign memory of total is on one device, and its stages run on 3");
  CHECK(of(weft::foreign<x>(batch.data(), {3, 5})) == "weft::bind: the foreign memory of x has extent 5 in dim 1, the graph has 4");
  CHECK(of(weft::foreign<x>(batch.data(), {3, 4}, {1, 3})) ==
        "weft::bind: the foreign memory of x has stride 3 in dim 1, dense is 1: make it contiguous");
  CHECK(of(weft::foreign<x>(nullptr, {3, 4})) == "weft::bind: the foreign memory of x is a null pointer");
  CHECK(of(weft::foreign<middle>(batch.data(), {3})) ==
        "weft::bind: middle cannot lie in foreign memory: it is neither fed, kept nor state");
}

TEST_CASE("a DLPack tensor of another type, rank or device is refused") {
  auto batch = numbers();
  std::int64_t const shape[] = {3, 4};
  tensor const good{batch.data(), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
  auto const why = [](tensor t) { return refused([&] { weft::from_dlpack<x>(t); }); };
  CHECK(why(good).empty());
  auto t = good;
  t.dtype.bits = 64;
  CHECK(why(t) == "weft::from_dlpack: the tensor for x has bits 64, the port needs 32");
  t = good, t.ndim = 1;
  CHECK(why(t) == "weft::from_dlpack: the tensor for x has rank 1, the port needs 2");
  t = good, t.device.device_type = 2;
  CHECK(why(t) == "weft::from_dlpack: the tensor for x has device type 2, the port needs 1");
  t = good, t.byte_offset = 8;
  CHECK(weft::from_dlpack<x>(t).data == batch.data() + 2);
}
