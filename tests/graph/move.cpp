// Moves: a matrix goes through every layout and comes back as it was, whatever the degrees and however unevenly they cut it.
#include "weft/weft.hpp"
#include "weft/engine/cpu.hpp"
#include "refused.hpp"
#include <doctest/doctest.h>
namespace {
using weft::in, weft::out, weft::inout, weft::move, weft::local;
struct r : weft::dim {};
struct c : weft::dim {};
struct half : weft::part<r> {};
struct down : weft::axis {};
struct across : weft::axis {};
template <int> struct m : weft::port<int, r, c> {};
template <int From> struct pass {
  static void run(in<m<From>> a, out<m<From + 1>> b) {
    for (size_t i = 0; i < a.count(); ++i) b.flat(i) = a.flat(i);
  }
};
struct rows : weft::pool<weft::split<down, r>> {};
struct columns : weft::pool<weft::split<across, c>> {};
struct mesh : weft::pool<weft::split<down, r>, weft::split<across, c>> {};
struct turned : weft::pool<weft::split<across, c>, weft::split<down, r>> {};  // the same shares on other devices
struct both : weft::pool<weft::split<down, r>, weft::split<across, r>> {};    // one dim cut by two axes
struct far : weft::pool<weft::split<down, r>> {
  using devices = struct other_machine;
};
using step =
    weft::graph<weft::feed<m<0>>, weft::at<rows, pass<0>>, weft::at<columns, pass<1>>, weft::at<mesh, pass<2>>, weft::at<turned, pass<3>>,
                weft::at<both, pass<4>>, weft::at<rows, pass<5>>, weft::at<far, pass<6>>, pass<7>, weft::keep<m<8>>>;
static_assert(weft::reshard<m<0>, local, rows>() == move::scatter && weft::reshard<m<1>, rows, columns>() == move::all_to_all);
static_assert(weft::reshard<m<2>, columns, mesh>() == move::scatter && weft::reshard<m<3>, mesh, rows>() == move::gather);
static_assert(weft::reshard<m<3>, mesh, turned>() == move::all_to_all && weft::reshard<m<3>, both, both>() == move::none);
static_assert(weft::reshard<m<4>, rows, far>() == move::send && weft::reshard<m<5>, far, local>() == move::gather);
static_assert(step::moves.n == 8);

move what(weft::detail::instance const& b, size_t k) {
  auto const& p = b.program_at(0);
  return p.nodes[p.written_nodes + k].what;
}
}  // namespace

TEST_CASE("a matrix goes through every layout") {
  for (size_t height : {0, 1, 4, 7})
    for (size_t width : {1, 5, 12})
      for (size_t d : {1, 2, 3})
        for (size_t a : {1, 2, 4}) {
          CAPTURE(height);
          CAPTURE(width);
          CAPTURE(d);
          CAPTURE(a);
          auto s = weft::bind<step>(weft::cpu{{}, true}, r{height}, c{width}, down{d}, across{a});
          for (size_t k = 0; k < d * a; ++k)
            for (size_t i = 0; i < height * width; ++i) s.view_of<m<0>>(k).flat(i) = int(i);
          s.step();
          for (size_t k = 0; k < d * a; ++k)
            for (size_t i = 0; i < height * width; ++i) CHECK(s.view_of<m<8>>(k).flat(i) == int(i));
        }
}

TEST_CASE("bind lets the moves idle whose layouts agree") {
  auto one = weft::bind<step>(weft::cpu{}, r{6}, c{6}, down{1}, across{1});
  for (size_t k = 0; k < 8; ++k) CHECK(what(one, k) == (k == 6 || k == 7 ? move::send : move::idle));  // other devices stay others
  for (size_t b = 0; b < one.program_at(0).buffer_count; ++b) {
    auto const& p = one.program_at(0);
    if (p.nodes[p.rows[p.buffers[b].row].node].what == move::idle) CHECK(p.bytes[b] == 0);  // no copy, no bytes
  }
  auto flat = weft::bind<step>(weft::cpu{}, r{6}, c{6}, down{2}, across{1});
  CHECK(what(flat, 0) == move::scatter);
  CHECK(what(flat, 1) == move::gather);  // rows to columns, of which there is one
  CHECK(what(flat, 3) == move::idle);    // mesh and turned: one line of devices
  CHECK_THROWS_AS((weft::bind<step>(weft::cpu{}, r{6}, c{6}, down{0}, across{1})), weft::refusal);
}

// Parts of a sum that are read where the port is cut: a reduce_scatter.
namespace {
struct partial : weft::sum_over<weft::port<int, c>, r> {};
struct fold {
  static void run(in<m<0>> a, out<partial> b) {
    for (size_t k = 0; k < b.count(); ++k) {
      b(k) = 0;
      for (size_t i = 0; i < a.extent<r>(); ++i) b(k) += a(i, k);
    }
  }
};
struct whole : weft::port<int, c> {};
struct copy {
  static void run(in<partial> a, out<whole> b) {
    for (size_t k = 0; k < a.count(); ++k) b(k) = a(k);
  }
};
template <class From> using reduced = weft::graph<weft::feed<m<0>>, weft::at<From, fold>, weft::at<columns, copy>, weft::keep<whole>>;
static_assert(weft::reshard<partial, rows, columns>() == move::sum && weft::reshard<partial, mesh, local>() == move::sum);
// Sums of floats add in the order of devices: the same bits as a loop over the shares.
struct f : weft::port<float, r> {};
struct f_sum : weft::sum_over<weft::port<float>, r> {};
struct f_total : weft::port<float> {};
struct f_fold {
  static void run(in<f> a, out<f_sum> s) {
    s() = 0;
    for (float x : a) s() += x;
  }
};
struct f_copy {
  static void run(in<f_sum> s, out<f_total> t) { t() = s(); }
};
using summed = weft::graph<weft::feed<f>, weft::at<both, f_fold>, f_copy, weft::keep<f_total>>;
}  // namespace

TEST_CASE("sums over devices") {
  auto const run = [](auto&& u, size_t devices) {
    for (size_t d = 0; d < devices; ++d)
      for (size_t i = 0; i < 7 * 12; ++i) u.template view_of<m<0>>(d).flat(i) = int(i);
    u.step();
    for (size_t d = 0; d < devices; ++d)
      for (size_t k = 0; k < 12; ++k) CHECK(u.template view_of<whole>(d)(k) == int(7 * k + 12 * 21));
  };
  for (size_t d : {1, 2, 3, 9})
    for (size_t a : {1, 2, 5}) {
      run(weft::bind<reduced<rows>>(weft::cpu{{}, true}, r{7}, c{12}, down{d}, across{a}), d > a ? d : a);
      run(weft::bind<reduced<mesh>>(weft::cpu{{}, true}, r{7}, c{12}, down{d}, across{a}), d * a);
      run(weft::bind<reduced<turned>>(weft::cpu{{}, true}, r{7}, c{12}, down{d}, across{a}), d * a);
      run(weft::bind<reduced<both>>(weft::cpu{{}, true}, r{7}, c{12}, down{d}, across{a}), d * a);
    }
  auto s = weft::bind<summed>(weft::cpu{}, r{11}, down{2}, across{2});
  float x[11], total = 0;
  for (size_t i = 0; i < 11; ++i) x[i] = 1.0f / float(3 * i + 1);
  for (size_t d = 0; d < 4; ++d)
    for (size_t i = 0; i < 11; ++i) s.view_of<f>(d)(i) = x[i];
  s.step();
  for (size_t d = 0; d < 4; ++d) {
    auto const mine = weft::share(11, 4, d);
    float part = 0;
    for (size_t i = mine.begin; i < mine.end; ++i) part += x[i];
    total = d ? total + part : part;
  }
  CHECK(s.view_of<f_total>()() == total);
}

// State lives where it is rewritten; who reads it in another layout reads what it was, moved or (where layouts agree) in place.
namespace {
struct table : weft::port<int, r, c> {};
struct show {
  static void run(weft::state<table> t, out<m<9>> b) {
    for (size_t i = 0; i < b.count(); ++i) b.flat(i) = t.flat(i);
  }
};
struct grow {
  static void run(weft::next<table> t) {
    for (int& i : t) ++i;
  }
};
using published = weft::graph<weft::at<rows, grow>, weft::at<columns, show>, weft::keep<m<9>>>;
static_assert(published::moves.n == 2 && published::table.nodes[published::stages].what == move::all_to_all);
}  // namespace

TEST_CASE("state is read as it was at the start of the step") {
  for (size_t d : {1, 2, 3})
    for (size_t a : {1, 2}) {
      auto t = weft::bind<published>(weft::cpu{{}, true}, r{5}, c{12}, down{d}, across{a});
      size_t const devices = d > a ? d : a;
      for (size_t k = 0; k < devices; ++k) {
        auto const mine = weft::share(5, d, k % d);
        for (size_t i = 0; i < mine.size() * 12; ++i) t.view_of<table>(k).flat(i) = int(mine.begin * 12 + i);
      }
      for (int n = 0; n < 3; ++n) {
        t.step();
        for (size_t i = 0; i < 60; ++i) CHECK(t.view_of<m<9>>(devices - 1).flat(i) == int(i) + n);
      }
    }
}

// A reader that an in-place update depends on reads the old value, one that does not the new one, also through moves.
namespace {
struct total : weft::sum_over<weft::port<int>, r> {};
struct add_up {
  static void run(in<m<0>> a, out<total> t) {
    t() = 0;
    for (int i : a) t() += i;
  }
};
struct shift {
  static void run(in<total> t, inout<m<0>> a) {
    for (int& i : a) i += t();
  }
};
using in_place = weft::graph<weft::at<columns, weft::feed<m<0>>>, weft::at<rows, add_up>, weft::at<columns, shift>, weft::at<rows, pass<0>>,
                             weft::keep<m<1>>>;
static_assert(in_place::moves.n == 4);  // m<0> to rows twice: before and after the update
}  // namespace

TEST_CASE("moves before and after an update in place") {
  for (size_t d : {1, 2, 3})
    for (size_t a : {1, 2, 3}) {
      auto s = weft::bind<in_place>(weft::cpu{{}, true}, r{3}, c{4}, down{d}, across{a});
      size_t const devices = d > a ? d : a;
      for (size_t k = 0; k < devices; ++k) {
        auto const mine = weft::share(4, a, k % a);
        for (size_t i = 0; i < 3; ++i)
          for (size_t j = 0; j < mine.size(); ++j) s.view_of<m<0>>(k)(i, j) = int(4 * i + mine.begin + j);
      }
      s.step();
      for (size_t i = 0; i < 12; ++i) CHECK(s.view_of<m<1>>().flat(i) == int(i) + 66);
    }
}

// Moves inside a loop over uneven shares of uneven shards.
namespace {
struct doubled : weft::port<int, r, c> {};
struct twice {
  static void run(in<m<0>> a, out<doubled> b) {
    for (size_t i = 0; i < b.count(); ++i) b.flat(i) = 2 * a.flat(i);
  }
};
struct plus {
  static void run(in<doubled> a, out<m<1>> b) {
    for (size_t i = 0; i < b.count(); ++i) b.flat(i) = a.flat(i) + 1;
  }
};
using looped = weft::graph<weft::feed<m<0>>, weft::each<half, weft::at<turned, twice>, weft::at<rows, plus>>, weft::keep<m<1>>>;
}  // namespace

TEST_CASE("moves inside loops cut unevenly") {
  for (size_t n : {1, 5, 8, 11})
    for (size_t d : {1, 2, 3})
      for (size_t a : {1, 2})
        for (size_t parts : {1, 2, 3}) {
          auto s = weft::bind<looped>(weft::cpu{{}, true}, r{n}, c{3}, down{d}, across{a}, half{parts});
          for (size_t k = 0; k < d * a; ++k)
            for (size_t i = 0; i < n * 3; ++i) s.view_of<m<0>>(k).flat(i) = int(i);
          s.step();
          for (size_t k = 0; k < d * a; ++k)
            for (size_t i = 0; i < n * 3; ++i) CHECK(s.view_of<m<1>>(k).flat(i) == 2 * int(i) + 1);
        }
}
