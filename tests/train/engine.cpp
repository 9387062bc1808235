#define WEFT_INSTANTIATE
#include <weft/engine/cpu_instances.hpp>
