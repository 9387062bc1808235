// few_rows.cuh — gemm_nt for at most 16 rows, as a decode step of few samples has: a matter of streaming the weights, and of how long one
// kernel waits for the other. Every output is one chain of m16n8k16 steps over k, so its bits are those of every other plan
// (gemm_reference.cuh). What stands in front of the product, a norm or a gate, is done by every block for itself.
//
// A warp takes eight rows of the weights at a time through a ring in shared memory that belongs to it alone, filled by the copy engine. It
// begins to fill it before the kernel in front has ended: weights depend on nothing. For sm_90.
#pragma once
#include <weft/kernels/cuda/instructions.cuh>
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/kernels/cuda/swiglu.cuh>

namespace weft::kernels {
// What the rows [m, k] of a product are. Each writes row r to `to + r * pitch` in shared memory, all threads of the block together; ahead()
// is what a thread may load before the kernel in front has ended.
struct plain_rows {
  bf16 const* x;  // [m, k]
  size_t distance;
  struct early {};
  bool fits(size_t k) const { return whole_eights(k, x) && distance % 8 == 0; }
  __device__ early ahead(int) const { return {}; }
  __device__ void operator()(int m, int k, unsigned char* to, u32 pitch, early) const {
    int const chunks = k / 8;
    for (int at = static_cast<int>(threadIdx.x); at < m * chunks; at += static_cast<int>(blockDim.x)) {
      int const row = at / chunks, c = at % chunks;
      *reinterpret_cast<uint4*>(to + static_cast<u32>(row) * pitch + c * 16) =
          *reinterpret_cast<uint4 const*>(x + static_cast<size_t>(row) * distance + c * 8);
    }
  }
};
// rmsnorm(residual + product); the sum is left in `sum`, which is not `residual`: other blocks still read it. A warp a row.
struct normed_rows {
  bf16 const *product /*[m, k], or null*/, *residual;
  bf16* sum /*[m, k], or null*/;
  bf16 const* weight;  // [k]
  f32 eps;
  struct early {
    eight weight[4];
  };
  bool fits(size_t k) const { return k > 256 && k <= 1024 && whole_eights(k, product, residual, sum, weight); }
  __device__ early ahead(int k) const {
    early w;
    detail::load_norm_weight<32, 4, true>(static_cast<size_t>(k), threadIdx.x % 32, weight, w.weight);
    return w;
  }
  __device__ void operator()(int m, int k, unsigned char* to, u32 pitch, early const& w) const {
    size_t const width = static_cast<size_t>(k);
    for (int row = static_cast<int>(threadIdx.x / 32); row < m; row += static_cast<int>(blockDim.x / 32)) {
      size_t const at = static_cast<size_t>(row) * width;
      detail::norm_row<32, 4, true>(width, threadIdx.x % 32, product ? product + at : nullptr, residual + at,
                                    sum && blockIdx.x == 0 ? sum + at : nullptr, w.weight, eps,
                                    reinterpret_cast<bf16*>(to + static_cast<u32>(row) * pitch));
    }
  }
};
// silu(gate) * up
struct gated_rows {
  bf16 const* gate_up;  // [m, 2k]
  struct early {};
  bool fits(size_t k) const { return whole_eights(k, gate_up); }
  __device__ early ahead(int) const { return {}; }
  __device__ void operator()(int m, int k, unsigned char* to, u32 pitch, early) const {
    int const chunks = k / 8;
    for (int at = static_cast<int>(threadIdx.x); at < m * chunks; at += static_cast<int>(blockDim.x)) {
      int const row = at / chunks, i = at % chunks * 8;
      bf16 const* const x = gate_up + static_cast<size_t>(row) * 2 * static_cast<size_t>(k);
      size_t const width = static_cast<size_t>(k), e = static_cast<size_t>(i);
      store8<true>(reinterpret_cast<bf16*>(to + static_cast<u32>(row) * pitch), e, width,
                   detail::gated(load8<true>(x, e, width), load8<true>(x + width, e, width)));
    }
  }
};

namespace cuda {
inline constexpr size_t few_rows = 16;
inline constexpr unsigned few_rows_threads = 256, few_rows_barriers = 128;

inline __device__ void barrier_init(u32 barrier) { asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory"); }
inline __device__ void barriers_visible() {  // to the copy engine
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
inline __device__ void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
inline __device__ void barrier_wait(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier), "r"(parity)
               : "memory");
}
// bytes from global to shared memory by the copy engine; completes on the barrier
inline __device__ void copy_bulk(u32 to, void const* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

struct few_rows_shape {
  int m, n, k;
  int part_k, parts;  // of a warp's ring: eight rows of part_k, times parts
  int warps;          // that multiply
};
__host__ __device__ inline u32 few_rows_pitch(int k) { return static_cast<u32>(k) * 2 + 16; }  // no bank conflicts

// shared: barriers; a [m][k]; a ring a warp
template <class Rows> __global__ void __launch_bounds__(few_rows_threads, 1)
    few_rows_kernel(Rows rows, few_rows_shape s, bf16 const* w /*[n, k]*/, size_t ldw, bf16* c /*[m, n]*/, size_t ldc) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char shared[];
  int const warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(lane_id());
  u32 const pitch = few_rows_pitch(s.k), part_pitch = few_rows_pitch(s.part_k), part_bytes = 8 * part_pitch;
  u32 const base = shared_address(shared), a_at = base + few_rows_barriers * 8,
            ring = a_at + static_cast<u32>(s.m) * pitch + static_cast<u32>(warp * s.parts) * part_bytes,
            barriers = base + static_cast<u32>(warp * s.parts) * 8;
  int const stride = static_cast<int>(gridDim.x) * s.warps, first = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  int const steps = s.k / s.part_k, tiles = s.n / 8,
            total = warp < s.warps && first < tiles ? ((tiles - 1 - first) / stride + 1) * steps : 0;
  int tile = first, step = 0, slot = 0;  // of the next part to set out
  auto const set_out = [&] {             // lanes 0 to 7 a row each
    u32 const barrier = barriers + static_cast<u32>(slot) * 8, bytes = static_cast<u32>(s.part_k) * 2;
    if (lane == 0) barrier_expect(barrier, 8 * bytes);
    __syncwarp();
    if (lane < 8)
      copy_bulk(ring + static_cast<u32>(slot) * part_bytes + static_cast<u32>(lane) * part_pitch,
                w + static_cast<size_t>(tile * 8 + lane) * ldw + step * s.part_k, bytes, barrier);
    if (++step == steps) step = 0, tile += stride;
    if (++slot == s.parts) slot = 0;
  };
  if (lane == 0 && warp < s.warps) {
    for (int i = 0; i < s.parts; ++i) barrier_init(barriers + static_cast<u32>(i) * 8);
    barriers_visible();
  }
  __syncwarp();
  for (int i = 0; i < s.parts && i < total; ++i) set_out();
  next_may_start();
  auto const early = rows.ahead(s.k);
  wait_for_previous();
  rows(s.m, s.k, shared + few_rows_barriers * 8, pitch, early);
  __syncthreads();

  // rows beyond m repeat the last one; nobody reads what becomes of them
  u32 const a_lane = a_at + static_cast<u32>(min(lane / 8 % 2 * 8 + lane % 8, s.m - 1)) * pitch + static_cast<u32>(lane / 16 * 16);
  u32 const w_lane = static_cast<u32>(lane % 8) * part_pitch + static_cast<u32>(lane / 8 * 16);
  u32 parity = 0;
  int read = 0, at_step = 0, at_tile = first;
  float sum[4] = {};
  for (int part = 0; part < total; ++part) {
    barrier_wait(barriers + static_cast<u32>(read) * 8, parity);
    u32 from = ring + static_cast<u32>(read) * part_bytes + w_lane, a_from = a_lane + static_cast<u32>(at_step * s.part_k * 2);
    u32 y[4], x[4], z[4];  // the fragments of the next 32 of k: asked for before those at hand are multiplied
    load_matrices(y, from), load_matrices(x, a_from), load_matrices(z, a_from + 32);
#pragma unroll 4
    for (int i = s.part_k / 32; i > 0; --i) {
      u32 const ny[4] = {y[0], y[1], y[2], y[3]}, nx[4] = {x[0], x[1], x[2], x[3]}, nz[4] = {z[0], z[1], z[2], z[3]};
      if (i > 1) {
        from += 64, a_from += 64;
        load_matrices(y, from), load_matrices(x, a_from), load_matrices(z, a_from + 32);
      }
      multiply_add(sum, nx, ny[0], ny[1]);
      multiply_add(sum, nz, ny[2], ny[3]);
    }
    if (++read == s.parts) read = 0, parity ^= 1;
    if (part + s.parts < total) {
      __syncwarp();
      set_out();
    }
    if (++at_step < steps) continue;
    bf16* const to = c + static_cast<size_t>(lane / 4) * ldc + at_tile * 8 + lane % 4 * 2;
    if (lane / 4 < s.m) *reinterpret_cast<u32*>(to) = pack(sum[0], sum[1]);
    if (lane / 4 + 8 < s.m) *reinterpret_cast<u32*>(to + 8 * ldc) = pack(sum[2], sum[3]);
    sum[0] = sum[1] = sum[2] = sum[3] = 0;
    at_step = 0, at_tile += stride;
  }
#endif
}

}  // namespace cuda

// c [m, n] = rows [m, k] b [n, k]^T, m at most 16. False, and nothing done, where this is not the way: another architecture, rows of other
// than 16 bytes, k that is not a multiple of 32, or more than fits beside the rings.
template <class Rows> bool gemm_few_rows(cuda_context& on, Rows const& rows, size_t m, size_t n, size_t k, bf16 const* b /*[n, k]*/,
                                         size_t ldb, bf16* c, size_t ldc) {
  static bool const compiled = compiled_for_sm_90(cuda::few_rows_kernel<Rows>);
  if (!compiled || m > cuda::few_rows || !k || k % 32 || n % 8 || !rows.fits(k) || !whole_eights(ldb, b) || !whole_eights(ldc, c))
    return false;
  card const& here = this_card();
  unsigned const tiles = static_cast<unsigned>(n / 8), processors = static_cast<unsigned>(here.processors),
                 wanted = (tiles + processors - 1) / processors, warps = wanted < 8 ? wanted : 8, each = (tiles + warps - 1) / warps,
                 blocks = each < processors ? each : processors;
  // half of the memory where that holds all: the kernel behind this one then finds room beside it
  size_t const taken = cuda::few_rows_barriers * 8 + m * cuda::few_rows_pitch(static_cast<int>(k)),
               half = static_cast<size_t>(here.shared_memory) / 2, whole = static_cast<size_t>(here.shared_memory),
               share = warps * (k * 16 + 4 * 128);
  size_t const room = (wanted <= 8 && taken + share <= half) ? half - taken : whole > taken ? whole - taken : 0;
  size_t part_k = 512;
  while (part_k > 32 && (k % part_k || warps * 4 * 8 * size_t{cuda::few_rows_pitch(static_cast<int>(part_k))} > room)) part_k -= 32;
  size_t const part_bytes = 8 * size_t{cuda::few_rows_pitch(static_cast<int>(part_k))}, all = (wanted + 7) / 8 * (k / part_k);
  size_t parts = room / (warps * part_bytes);
  if (parts > all) parts = all;
  if (parts > cuda::few_rows_barriers / warps) parts = cuda::few_rows_barriers / warps;
  if (k % part_k || parts < 2) return false;
  static bool const allowed = [&] {
    check(cudaFuncSetAttribute(cuda::few_rows_kernel<Rows>, cudaFuncAttributeMaxDynamicSharedMemorySize, here.shared_memory),
          "gemm of few rows");
    return true;
  }();
  static_cast<void>(allowed);
  cuda::few_rows_shape const shape{static_cast<int>(m),      static_cast<int>(n),     static_cast<int>(k),
                                   static_cast<int>(part_k), static_cast<int>(parts), static_cast<int>(warps)};
  launch_chained(on, "gemm of few rows", cuda::few_rows_kernel<Rows>, dim3{blocks, 1, 1}, dim3{cuda::few_rows_threads, 1, 1},
                 taken + warps * parts * part_bytes, 1, rows, shape, b, ldb, c, ldc);
  return true;
}
}  // namespace weft::kernels
