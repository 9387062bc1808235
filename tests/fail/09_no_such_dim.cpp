// error: PORT_HAS_NO_DIM<seq
#include "../graph/grpo.hpp"
#ifdef TWIN
struct s { static void run(in<rewards> r, out<advantages>) { (void)r.extent<batch>(); } };
#else
struct s { static void run(in<rewards> r, out<advantages>) { (void)r.extent<seq>(); } };
#endif
void f() { s::run({}, {}); }
