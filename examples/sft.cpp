// supervised fine-tuning on rows with a response. `sft --help` lists every knob.
#include <program/recipes.hpp>

int main(int argc, char** argv) {
  return program::main(argc, argv, {"sft", "supervised fine-tuning on rows with a response", "sft"}, program::run);
}
