// gpu/step.hpp — RL steps of a model's shape on one GPU, with random weights: step --shape qwen3-0.6b|llama-3-8b [...].
#pragma once
namespace bench {
int step_on_gpu(int argc, char** argv);
}
