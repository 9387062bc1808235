// A program of somebody who includes weft: two translation units, one graph, and what needs fmt and threads. Built in five ways.
#include "graph.hpp"

#include <cstdio>
#include <weft/io/json.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/rmsnorm.hpp>

double other_unit();

int main() {
  weft::io::json const j = weft::io::json::object{{"version", WEFT_VERSION}};
  weft::kernels::threads pool(2);
  float x[2] = {3, 4}, weight[2] = {1, 1}, y[2];
  weft::kernels::cpu_context on{&pool};
  weft::kernels::rmsnorm(on, 1, 2, x, weight, 0.0f, y, static_cast<float*>(nullptr));
  std::printf("%s %.3f %.3f\n", j.dump().c_str(), double(y[0]), doubled_sum(3) + other_unit());
  return doubled_sum(3) == 6 && other_unit() == 12 && y[1] > 1.13f ? 0 : 1;
}
