// json.cpp — the one file in which the programs compile the JSON parser.
#include <weft/io/json_parse.hpp>
