// instructions.cuh — the machine instructions that kernels with tensor cores are made of, one function each.
//
// A fragment of 16 rows in a warp: with g = lane / 4 and t = lane % 4 a thread holds of each 8 columns n the elements
// (row g, columns 8n + 2t, + 1) and (row g + 8, the same columns): c[n][0..3]. mma.sync and wgmma agree on this layout.
#pragma once
#include <cuda_bf16.h>

#include <weft/element.hpp>

namespace weft::kernels::cuda {
inline __device__ u32 shared_address(void const* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
inline __device__ u32 lane_id() { return threadIdx.x % 32; }

// 16 bytes from global to shared memory, in the background; zeros if not `there`
inline __device__ void copy_async(u32 to, void const* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
inline __device__ void copy_async_if(bool wanted, u32 to, void const* from) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p cp.async.cg.shared.global [%0], [%1], 16;\n}" ::"r"(to), "l"(from),
               "r"(int{wanted})
               : "memory");
}
inline __device__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// until at most `left` of the groups committed by this thread are under way
template <int left> __device__ void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory"); }
// what this thread wrote to shared memory becomes visible to wgmma of those it synchronises with
inline __device__ void shared_visible_to_tensor_cores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

inline __device__ void load_matrices(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
inline __device__ void load_matrices_transposed(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
// c[16, 8] += a[16, 16] b[16, 8]. Of all shapes this one adds in wgmma's order; m16n8k8 does not.
inline __device__ void multiply_add(float (&c)[4], u32 const (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

inline __device__ float exp2_fast(float x) {  // 2^x, 2 ulp; 2^-inf = 0
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
inline __device__ u32 pack(float low, float high) {  // to bf16, to nearest even
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
inline __device__ float low_half(u32 x) { return __uint_as_float(x << 16); }
inline __device__ float high_half(u32 x) { return __uint_as_float(x & 0xffff0000u); }
}  // namespace weft::kernels::cuda
