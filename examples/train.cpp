// Runs any compiled recipe: `train --config F.yaml`, chosen by `algorithm`.
#include <program/recipes.hpp>

int main(int argc, char** argv) { return program::main(argc, argv, {"train", "any recipe, chosen by algorithm.name"}, program::run); }
