// foreign_memory.cpp — ports that lie where another program has them: its batch goes in and its weights are trained where they are, without a copy.
// One port is bound to a raw pointer with its layout, one to a DLPack tensor (what torch.utils.dlpack.to_dlpack gives). Trains a linear model.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <weft/engine/cpu.hpp>
#include <weft/plan.hpp>
using weft::in, weft::out, weft::next, weft::setting, weft::f32;

struct sample : weft::dim {};
struct feature : weft::dim {};
struct inputs : weft::port<f32, sample, feature> {};
struct targets : weft::port<f32, sample> {};
struct weights : weft::port<f32, feature> {};
struct loss : weft::port<f32> {};
struct learning { f32 rate; };

struct descend {                                              // one step on the mean of (w x - y)^2
  static void run(in<inputs> x, in<targets> y, setting<learning> s, next<weights> w, out<loss> l) {
    l() = 0;
    for (size_t i = 0; i < y.count(); ++i) {
      f32 error = -y(i);
      for (size_t k = 0; k < w.count(); ++k) error += w(k) * x(i, k);
      for (size_t k = 0; k < w.count(); ++k) w(k) -= s->rate * error * x(i, k);
      l() += error * error / f32(y.count());
    }
  }
};
using regression = weft::graph<weft::feed<inputs>, weft::feed<targets>, descend, weft::keep<loss>>;

// DLPack's structs (dlpack.h, stable since its version 0.2); include that header instead where it is at hand.
struct DLDevice { std::int32_t device_type, device_id; };
struct DLDataType { std::uint8_t code, bits; std::uint16_t lanes; };
struct DLTensor { void* data; DLDevice device; std::int32_t ndim; DLDataType dtype; std::int64_t *shape, *strides; std::uint64_t byte_offset; };

int main() {
  std::vector<f32> batch(32 * 3), wanted(32), model(3);       // of the other program
  for (size_t i = 0; i < 32; ++i) {
    for (size_t k = 0; k < 3; ++k) batch[3 * i + k] = f32((i * 7 + k * 5) % 11) / 11 - 0.5f;
    wanted[i] = 2 * batch[3 * i] - batch[3 * i + 1] + 0.5f * batch[3 * i + 2];
  }
  std::int64_t shape[] = {3};
  DLTensor const tensor{model.data(), {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0};

  auto step = weft::bind<regression>(weft::cpu{}, sample{32}, feature{3}, learning{0.1f},
                                     weft::foreign<inputs>{batch.data(), {32, 3}}, weft::from_dlpack<weights>(tensor));
  std::fputs(weft::plan_text(step).c_str(), stdout);          // neither port has bytes in the arena
  for (size_t i = 0; i < 32; ++i) step.view_of<targets>()(i) = wanted[i];
  for (int k = 0; k < 100; ++k) step.step();
  std::printf("weights %.3f %.3f %.3f, loss %.1e\n", double(model[0]), double(model[1]), double(model[2]), double(step.view_of<loss>()()));
  return model[0] > 1.99f && model[1] < -0.99f && step.view_of<inputs>().data == batch.data() ? 0 : 1;
}
