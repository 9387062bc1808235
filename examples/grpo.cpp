// GRPO: prompts with answers that a function can score. `grpo --help` lists every knob.
#include <program/recipes.hpp>

int main(int argc, char** argv) {
  return program::main(argc, argv, {"grpo", "GRPO: prompts with answers that a function can score", "grpo"}, program::run);
}
