// error: PORT_HAS_WRONG_ELEMENT<rewards_x
#include "../graph/grpo.hpp"
#ifdef TWIN
struct rewards_x : weft::port<weft::f32, batch, group> {};
#else
struct rewards_x : weft::port<weft::i32, batch, group> {};
#endif
template <class R, class A> struct z_score : weft::expects<R, weft::f32, batch, group> { static void run(in<R>, out<A>) {} };
struct s2 { static void run(in<tokens>, out<rewards_x>) {} };
using g = weft::graph<weft::feed<prompts>, generate, s2, z_score<rewards_x, advantages>, policy_loss, sgd, weft::keep<loss>>;
int x = g::size;
