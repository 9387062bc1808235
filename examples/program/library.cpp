// library.cpp — the one file in which the programs compile the JSON parser, the tokenizers, the functions of a run and the large functions of the engine.
#define WEFT_INSTANTIATE
#include <weft/engine/cpu_instances.hpp>
#include <weft/io/json_parse.hpp>
#include <weft/io/read_tokenizer.hpp>
#include <weft/train/run_functions.hpp>
