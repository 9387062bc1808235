// save_model FROM TO BYTES LABELS: writes a model's folder as a run saves it, with files of at most BYTES; with LABELS as a critic whose score
// head is drawn. For tests/tools/transformers_loads.py.
#include <program/program.hpp>
#include <weft/train/model_files.hpp>

int main(int argc, char** argv) {
  std::string from, to;
  std::int64_t bytes = 0, labels = 0;
  return program::main(argc, argv, {"save_model", "Write a model's folder as a run saves it"},
                       {{"from", &from, "a Hugging Face folder", true},
                        {"to", &to, "the folder that is written", true},
                        {"bytes", &bytes, "of a file of weights", true},
                        {"labels", &labels, "0: a language model", true}},
                       [&] {
                         weft::train::model_files files(from, weft::i32(labels), false);
                         std::vector<float> weights(weft::model::parameter_count(files.config()));
                         files.load(0, weights.data());
                         if (labels) weights[weft::model::layout_of(files.config()).head] = 0.5f;
                         weft::train::save_model(to, files, weights.data(), weft::io::u64(bytes));
                         return 0;
                       });
}
