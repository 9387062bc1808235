// gemm_plans.cuh — which cuBLASLt algorithm serves which product; see gemm.cuh.
#pragma once
#include <cublasLt.h>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>
#include <weft/kernels/cuda/gemm_reference.cuh>

namespace weft::kernels {
enum class gemm_form { nt, nn, tn };
struct gemm_shape {
  gemm_form form;
  bool f32_out, accumulate;
  size_t m, n, k;  // m: padded
  auto key() const { return std::tuple(form, f32_out, accumulate, m, n, k); }
  bool operator<(gemm_shape const& other) const { return key() < other.key(); }
};
// The number of rows that a product of m rows runs with.
constexpr size_t gemm_rows(size_t m) {
  if (m > 256) return (m + 255) / 256 * 256;
  size_t rows = 16;
  while (rows < m) rows *= 2;
  return m ? rows : 0;
}

inline void check(cublasStatus_t e, char const* what) {
  if (e != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusName(e));
}

struct gemm_plan {
  cublasLtMatmulAlgo_t algorithm;
  f32 milliseconds;       // as the search measured it
  bool equal;             // every row equals the reference
  f32 best_milliseconds;  // of all candidates, equal or not (compare: split reductions too)
};

class gemm_plans {
 public:
  static constexpr size_t workspace_bytes = size_t{32} << 20;

  // file: where plans are kept, or empty. compare: searches also time what cuBLASLt offers without the restriction. One object serves one
  // stream at a time: products share its workspace.
  explicit gemm_plans(std::string file = {}, bool compare = false) : file_(std::move(file)), compare_(compare) {
    check(cublasLtCreate(&handle_), "create");
    check(cudaMalloc(&workspace_, workspace_bytes), "workspace");
    int device = 0, driver = 0;
    cudaDeviceProp card{};
    check(cudaGetDevice(&device), "device");
    check(cudaGetDeviceProperties(&card, device), "device properties");
    check(cudaDriverGetVersion(&driver), "driver version");
    machine_ = card.name;
    for (char& c : machine_)
      if (c == ' ') c = '_';
    machine_ += "/" + std::to_string(driver) + "/" + std::to_string(cublasLtGetVersion());
    read();
  }
  gemm_plans(gemm_plans const&) = delete;
  gemm_plans& operator=(gemm_plans const&) = delete;
  ~gemm_plans() {
    cudaFree(workspace_);
    cublasLtDestroy(handle_);
  }

  // Searches if there is no plan yet. Takes memory for the operands while it searches, and waits for the device. The gradient of a weight
  // (tn) is planned at gemm_rows(k), so that not every number of tokens has its search.
  gemm_plan const& prepare(gemm_shape s) {
    s = planned(s);
    auto const found = plans_.find(s);
    if (found != plans_.end()) return found->second;
    gemm_plan const plan = search(s);
    write(s, plan);
    return plans_.emplace(s, plan).first->second;
  }
  void run(cudaStream_t stream, gemm_shape const& s, bf16 const* a, size_t lda, bf16 const* b, size_t ldb, void* c, size_t ldc) {
    auto found = plans_.find(planned(s));
    if (found == plans_.end()) {
      cudaStreamCaptureStatus status{};
      check(cudaStreamIsCapturing(stream, &status), "capture status");
      if (status != cudaStreamCaptureStatusNone)
        throw std::runtime_error("gemm: no plan for " + text(s) + "; prepare it before the capture");
      prepare(s);
      found = plans_.find(planned(s));
    }
    product p(s, lda, ldb, ldc);
    check(p.enqueue(handle_, stream, a, b, c, found->second.algorithm, workspace_), "matmul");
  }
  std::map<gemm_shape, gemm_plan> const& plans() const { return plans_; }
  static std::string text(gemm_shape const& s) {
    char const* const form[] = {"nt", "nn", "tn"};
    return std::string(form[int(s.form)]) + (s.f32_out ? " f32 " : " bf16 ") + (s.accumulate ? "+= " : "= ") + std::to_string(s.m) + " " +
           std::to_string(s.n) + " " + std::to_string(s.k);
  }

 private:
  static gemm_shape planned(gemm_shape s) {
    if (s.form == gemm_form::tn) s.k = gemm_rows(s.k);
    return s;
  }
  // The descriptors of one call. cuBLASLt is column-major, so it computes c^T [n, m] = b^T a^T.
  struct product {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t first, second, out;
    bool accumulate;
    product(gemm_shape const& s, size_t lda, size_t ldb, size_t ldc) : accumulate(s.accumulate) {
      check(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "descriptor");
      i32 const yes = CUBLAS_OP_T, no = CUBLAS_OP_N;
      bool const b_turned = s.form == gemm_form::nt, a_turned = s.form == gemm_form::tn;
      check(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, b_turned ? &yes : &no, sizeof yes), "descriptor");
      check(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSB, a_turned ? &yes : &no, sizeof yes), "descriptor");
      check(cublasLtMatrixLayoutInit(&first, CUDA_R_16BF, b_turned ? s.k : s.n, b_turned ? s.n : s.k, static_cast<std::int64_t>(ldb)),
            "layout");
      check(cublasLtMatrixLayoutInit(&second, CUDA_R_16BF, a_turned ? s.m : s.k, a_turned ? s.k : s.m, static_cast<std::int64_t>(lda)),
            "layout");
      check(cublasLtMatrixLayoutInit(&out, s.f32_out ? CUDA_R_32F : CUDA_R_16BF, s.n, s.m, static_cast<std::int64_t>(ldc)), "layout");
    }
    cublasStatus_t enqueue(cublasLtHandle_t handle, cudaStream_t stream, void const* a, void const* b, void* c,
                           cublasLtMatmulAlgo_t const& algorithm, void* workspace) {
      f32 const one = 1, beta = accumulate ? 1.0f : 0.0f;
      return cublasLtMatmul(handle, &operation, &one, b, &first, a, &second, &beta, c, &out, c, &out, &algorithm, workspace,
                            workspace_bytes, stream);
    }
  };
  struct memory {
    void* data = nullptr;
    explicit memory(size_t bytes) { check(cudaMalloc(&data, bytes ? bytes : 1), "memory for a search of algorithms"); }
    ~memory() { cudaFree(data); }
    memory(memory const&) = delete;
    memory& operator=(memory const&) = delete;
  };

  static constexpr int candidates = 64, repeats = 5;

  int offered(product& p, u32 reductions, cublasLtMatmulHeuristicResult_t* to /*[candidates]*/) const {
    cublasLtMatmulPreferenceOpaque_t preference;
    check(cublasLtMatmulPreferenceInit(&preference), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions),
          "preference");
    check(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                               sizeof workspace_bytes),
          "preference");
    int count = 0;
    cublasStatus_t const e =
        cublasLtMatmulAlgoGetHeuristic(handle_, &p.operation, &p.first, &p.second, &p.out, &p.out, &preference, candidates, to, &count);
    return e == CUBLAS_STATUS_SUCCESS ? count : 0;
  }
  gemm_plan search(gemm_shape const& s) {
    bool const a_turned = s.form == gemm_form::tn, b_turned = s.form == gemm_form::nt;
    size_t const lda = a_turned ? s.m : s.k, ldb = b_turned ? s.k : s.n, ldc = s.n, c_bytes = s.m * s.n * (s.f32_out ? 4 : 2);
    size_t const flush_bytes = size_t{128} << 20;
    memory a(s.m * s.k * 2), b(s.n * s.k * 2), c(c_bytes), reference(detail::pattern_rows * s.n * 4), unequal(4), flush(flush_bytes);
    auto* const pa = static_cast<bf16*>(a.data);
    auto* const pb = static_cast<bf16*>(b.data);
    detail::matrix_view const va{pa, a_turned ? 1 : s.k, a_turned ? s.m : 1}, vb{pb, b_turned ? s.k : 1, b_turned ? 1 : s.n};
    detail::random_matrix<<<1024, 256>>>(s.m, s.k, va.row, va.k, detail::pattern_rows, 1u, pa);
    detail::random_matrix<<<1024, 256>>>(s.n, s.k, vb.row, vb.k, s.n, 2u, pb);
    size_t const rows = s.m < detail::pattern_rows ? s.m : detail::pattern_rows;
    dim3 const grid(static_cast<unsigned>((s.n + 31) / 32), static_cast<unsigned>((rows + 15) / 16));
    if (s.m < detail::pattern_rows) {  // the loop reads 64 rows: give it a matrix that has them
      memory padded(detail::pattern_rows * s.k * 2);
      auto* const pp = static_cast<bf16*>(padded.data);
      detail::random_matrix<<<1024, 256>>>(detail::pattern_rows, s.k, s.k, 1, detail::pattern_rows, 1u, pp);
      detail::reference_product<<<grid, 128>>>(s.n, s.k, {pp, s.k, 1}, vb, static_cast<f32*>(reference.data));
      check(cudaDeviceSynchronize(), "reference product");
    } else {
      detail::reference_product<<<grid, 128>>>(s.n, s.k, va, vb, static_cast<f32*>(reference.data));
    }
    check(cudaDeviceSynchronize(), "reference product");

    product p(s, lda, ldb, ldc);
    // What is offered for other numbers of rows runs here too: for few rows the best tile is often one of those.
    cublasLtMatmulHeuristicResult_t found[6 * candidates];
    int count = offered(p, CUBLASLT_REDUCTION_SCHEME_NONE, found);
    if (s.form != gemm_form::tn && s.m <= 256)
      for (size_t m = 64; m <= 512; m *= 2) {
        product other({s.form, s.f32_out, s.accumulate, m, s.n, s.k}, lda, ldb, ldc);
        cublasLtMatmulHeuristicResult_t* const more = found + count;
        int const offers = offered(other, CUBLASLT_REDUCTION_SCHEME_NONE, more);
        for (int i = 0; i < offers; ++i) {
          int j = 0;
          while (j < count && std::memcmp(&found[j].algo, &more[i].algo, sizeof more[i].algo) != 0) ++j;
          if (j == count) found[count++] = more[i];
        }
      }
    int const all = count + (compare_ ? offered(p, CUBLASLT_REDUCTION_SCHEME_MASK, found + count) : 0);
    if (!count) throw std::runtime_error("gemm: cuBLASLt offers no algorithm for " + text(s));
    cudaEvent_t start{}, stop{};
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    gemm_plan best{{}, 0, false, 0};
    for (int i = 0; i < all; ++i) {
      if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
      cublasLtMatmulAlgo_t const& algorithm = found[i].algo;
      check(cudaMemset(c.data, s.accumulate ? 0 : 0xff, c_bytes), "poison");
      check(cudaMemset(unequal.data, 0, 4), "clear");
      if (p.enqueue(handle_, nullptr, pa, pb, c.data, algorithm, workspace_) != CUBLAS_STATUS_SUCCESS) continue;
      if (s.f32_out)
        detail::count_unequal<<<1024, 256>>>(s.m, s.n, static_cast<f32 const*>(c.data), static_cast<f32 const*>(reference.data),
                                             static_cast<u32*>(unequal.data));
      else
        detail::count_unequal<<<1024, 256>>>(s.m, s.n, static_cast<bf16 const*>(c.data), static_cast<f32 const*>(reference.data),
                                             static_cast<u32*>(unequal.data));
      u32 differing = 0;
      check(cudaMemcpy(&differing, unequal.data, 4, cudaMemcpyDeviceToHost), "compare");
      f32 least = 1e30f;
      for (int r = 0; r < repeats; ++r) {
        check(cudaMemsetAsync(flush.data, r, flush_bytes), "flush");  // the weights come from memory, as in a step
        check(cudaEventRecord(start), "event");
        check(p.enqueue(handle_, nullptr, pa, pb, c.data, algorithm, workspace_), "matmul");
        check(cudaEventRecord(stop), "event");
        check(cudaEventSynchronize(stop), "event");
        f32 ms = 0;
        check(cudaEventElapsedTime(&ms, start, stop), "event");
        if (ms < least) least = ms;
      }
      bool const equal = differing == 0;
      if (best.best_milliseconds == 0 || least < best.best_milliseconds) best.best_milliseconds = least;
      if (i < count && (best.milliseconds == 0 || (equal && !best.equal) || (equal == best.equal && least < best.milliseconds)))
        best.algorithm = algorithm, best.milliseconds = least, best.equal = equal;
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    if (best.milliseconds == 0) throw std::runtime_error("gemm: no algorithm runs " + text(s));
    return best;
  }

  // A line: machine form f32 accumulate m n k equal milliseconds best algorithm (16 hexadecimal digits a word)
  static constexpr size_t words = sizeof(cublasLtMatmulAlgo_t) / sizeof(u64);
  void read() {
    if (file_.empty()) return;
    std::FILE* const f = std::fopen(file_.c_str(), "r");
    if (!f) return;
    char line[1024], machine[256];
    while (std::fgets(line, sizeof line, f)) {
      int form = 0, wide = 0, add = 0, equal = 0, used = 0;
      gemm_shape s{};
      gemm_plan p{};
      if (std::sscanf(line, "%255s %d %d %d %zu %zu %zu %d %f %f%n", machine, &form, &wide, &add, &s.m, &s.n, &s.k, &equal, &p.milliseconds,
                      &p.best_milliseconds, &used) != 10 ||
          machine_ != machine || form < 0 || form > 2)
        continue;
      u64 word[words];
      size_t got = 0;
      for (char const* at = line + used; got < words; ++got) {
        int length = 0;
        if (std::sscanf(at, " %" SCNx64 "%n", &word[got], &length) != 1) break;
        at += length;
      }
      if (got < words) continue;
      std::memcpy(&p.algorithm, word, sizeof word);
      s.form = static_cast<gemm_form>(form), s.f32_out = wide, s.accumulate = add, p.equal = equal;
      plans_.insert_or_assign(s, p);
    }
    std::fclose(f);
  }
  void write(gemm_shape const& s, gemm_plan const& p) const {
    if (file_.empty()) return;
    std::FILE* const f = std::fopen(file_.c_str(), "a");
    if (!f) throw std::runtime_error("gemm: cannot write plans to " + file_);
    u64 word[words];
    std::memcpy(word, &p.algorithm, sizeof word);
    std::string line = machine_ + " " + std::to_string(int(s.form)) + " " + std::to_string(s.f32_out) + " " + std::to_string(s.accumulate) +
                       " " + std::to_string(s.m) + " " + std::to_string(s.n) + " " + std::to_string(s.k) + " " + std::to_string(p.equal) +
                       " " + std::to_string(p.milliseconds) + " " + std::to_string(p.best_milliseconds);
    char digits[32];
    for (size_t w = 0; w < words; ++w) std::snprintf(digits, sizeof digits, " %" PRIx64, word[w]), line += digits;
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), f);  // one write a line: programs may share the file
    std::fclose(f);
  }

  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::string file_, machine_;
  bool compare_;
  std::map<gemm_shape, gemm_plan> plans_;
};
}  // namespace weft::kernels
