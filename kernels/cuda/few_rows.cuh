// few_rows.cuh — gemm_nt for at most 16 rows, as one sample's decode step has: a matter of streaming the weights. Every output is one chain of
// m16n8k16 steps over k, so its bits are those of every other plan (gemm_reference.cuh).
//
// A warp takes eight rows of the weights at a time through a ring in shared memory that belongs to it alone, and begins to fill it before
// the kernel in front has ended: weights depend on nothing. The 16 rows of a lie in shared memory whole.
#pragma once
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/instructions.cuh>

namespace weft::kernels {
namespace cuda {
inline constexpr size_t few_rows = 16;
inline constexpr int part_k = 128, part_row = part_k * 2 + 16 /*no bank conflicts*/, part_bytes = 8 * part_row;

inline __device__ void barrier_init(u32 barrier) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
inline __device__ void barrier_wait(u32 barrier) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(barrier) : "memory");
}
// bytes from global to shared memory by the copy engine; completes on the barrier
inline __device__ void copy_bulk(u32 to, void const* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

// shared: a [16][k] with 16 bytes behind each row; then a ring of `parts` a warp. parts - 1 are in flight.
template <int parts> __global__ void __launch_bounds__(256)
    few_rows_kernel(int n, int k, bf16 const* a /*[16, k]*/, size_t lda, bf16 const* w /*[n, k]*/, size_t ldw, bf16* c /*[16, n]*/,
                    size_t ldc) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(8) unsigned long long arrived;
  int const warps = static_cast<int>(blockDim.x / 32), warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(lane_id());
  u32 const row_bytes = static_cast<u32>(k) * 2 + 16, a_at = shared_address(shared), ring = a_at + 16 * row_bytes + static_cast<u32>(warp * parts * part_bytes),
            barrier = shared_address(&arrived);
  int const steps = k / part_k, stride = static_cast<int>(gridDim.x) * warps, first = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  int tile = first, step = 0;  // of the next part to set out
  u32 write = ring, read = ring;
  auto const after = [&](u32 at) { return at + part_bytes == ring + parts * part_bytes ? ring : at + part_bytes; };
  auto const set_out = [&] {
    if (tile * 8 < n) {
      bf16 const* const from = w + static_cast<size_t>(tile) * 8 * ldw + step * part_k;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int const at = i * 32 + lane, row = at / 16, chunk = at % 16;
        copy_async(write + static_cast<u32>(row * part_row + chunk * 16), from + static_cast<size_t>(row) * ldw + chunk * 8, true);
      }
      if (++step == steps) step = 0, tile += stride;
    }
    copy_commit();
    write = after(write);
  };
  for (int i = 0; i < parts - 1; ++i) set_out();
  next_may_start();
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) barrier_init(barrier);
  wait_for_previous();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(32 * k) : "memory");
    for (int row = 0; row < 16; ++row)
      copy_bulk(a_at + static_cast<u32>(row) * row_bytes, a + static_cast<size_t>(row) * lda, static_cast<u32>(k) * 2, barrier);
  }
  __syncthreads();
  barrier_wait(barrier);
#else
  for (int at = static_cast<int>(threadIdx.x); at < 2 * k; at += static_cast<int>(blockDim.x)) {
    int const row = at / (k / 8), chunk = at % (k / 8);
    copy_async(a_at + static_cast<u32>(row) * row_bytes + static_cast<u32>(chunk * 16), a + static_cast<size_t>(row) * lda + chunk * 8, true);
  }
  copy_commit();
  copy_wait<0>();
  __syncthreads();
#endif
  u32 const a_lane = a_at + static_cast<u32>(lane / 8 % 2 * 8 + lane % 8) * row_bytes + static_cast<u32>(lane / 16 * 16);
  u32 const w_lane = static_cast<u32>(lane % 8 * part_row + lane / 8 * 16);
  for (int t = first; t * 8 < n; t += stride) {
    float sum[4] = {};
    for (int s = 0; s < steps; ++s) {
      __syncwarp();
      set_out();
      copy_wait<parts - 1>();
      __syncwarp();
#pragma unroll
      for (int i = 0; i < part_k / 32; ++i) {
        u32 y[4], x[4], z[4];
        load_matrices(y, read + w_lane + static_cast<u32>(i * 64));
        load_matrices(x, a_lane + static_cast<u32>(s * part_k * 2 + i * 64));
        load_matrices(z, a_lane + static_cast<u32>(s * part_k * 2 + i * 64 + 32));
        multiply_add(sum, x, y[0], y[1]);
        multiply_add(sum, z, y[2], y[3]);
      }
      read = after(read);
    }
    bf16* const to = c + static_cast<size_t>(lane / 4) * ldc + t * 8 + lane % 4 * 2;
    *reinterpret_cast<u32*>(to) = pack(sum[0], sum[1]);
    *reinterpret_cast<u32*>(to + 8 * ldc) = pack(sum[2], sum[3]);
  }
}

template <int parts> bool launch_few_rows(cuda_context& on, unsigned blocks, unsigned warps, size_t most_shared, size_t n, size_t k, bf16 const* a,
                                          size_t lda, bf16 const* w, size_t ldw, bf16* c, size_t ldc) {
  size_t const shared = few_rows * (2 * k + 16) + warps * parts * size_t{part_bytes};
  if (shared > most_shared) return false;
  static bool const allowed = [&] {
    check(cudaFuncSetAttribute(few_rows_kernel<parts>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most_shared)), "gemm of few rows");
    return true;
  }();
  static_cast<void>(allowed);
  launch_chained(on, "gemm of few rows", few_rows_kernel<parts>, dim3{blocks, 1, 1}, dim3{warps * 32, 1, 1}, shared, 1, static_cast<int>(n),
                 static_cast<int>(k), a, lda, w, ldw, c, ldc);
  return true;
}
}  // namespace cuda

// c [16, n] = a [16, k] b [n, k]^T; 16 rows of a are read and of c written. False, and nothing done, where it does not fit: rows of 16
// bytes, k in whole parts, a in shared memory beside the rings.
inline bool gemm_few_rows(cuda_context& on, size_t n, size_t k, bf16 const* a, size_t lda, bf16 const* b, size_t ldb, bf16* c, size_t ldc) {
  auto const whole = [](void const* p, size_t distance) { return reinterpret_cast<size_t>(p) % 16 == 0 && distance % 8 == 0; };
  if (!k || k % cuda::part_k || n % 8 || !whole(a, lda) || !whole(b, ldb) || !whole(c, ldc)) return false;
  struct machine {
    int processors = 0, shared = 0;
  };
  static machine const here = [] {
    int device = 0;
    machine m;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&m.processors, cudaDevAttrMultiProcessorCount, device), "processors");
    check(cudaDeviceGetAttribute(&m.shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
    m.shared -= 1024;  // the barrier
    return m;
  }();
  unsigned const tiles = static_cast<unsigned>(n / 8), processors = static_cast<unsigned>(here.processors),
                 wanted = (tiles + processors - 1) / processors, warps = wanted < 8 ? wanted : 8;
  unsigned const most = (tiles + warps - 1) / warps, blocks = most < processors ? most : processors;
  auto const launch = warps <= 2 ? cuda::launch_few_rows<24> : warps <= 4 ? cuda::launch_few_rows<12> : cuda::launch_few_rows<6>;
  return launch(on, blocks, warps, static_cast<size_t>(here.shared), n, k, a, lda, b, ldb, c, ldc);
}
}  // namespace weft::kernels
