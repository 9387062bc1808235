// PPO with a critic of its own. `ppo --help` lists every knob.
#include <program/recipes.hpp>

int main(int argc, char** argv) { return program::main(argc, argv, {"ppo", "PPO with a critic of its own", "ppo"}, program::run); }
