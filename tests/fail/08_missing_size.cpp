// error: BIND_IS_MISSING_A_SIZE_FOR_DIM<seq
#include "../graph/grpo.hpp"
#ifdef TWIN
void f() { auto e = weft::bind<grpo>(weft::cpu{}, batch{2}, group{4}, seq{8}); e.step(); }
#else
void f() { auto e = weft::bind<grpo>(weft::cpu{}, batch{2}, group{4}); e.step(); }
#endif
