"""PyTorch on the shapes of bench/cuda_kernels.cu: microseconds, median of single calls with the caches flushed before each."""
import torch
import torch.nn.functional as F

flush = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")


def line(name, call):
    call()
    times = []
    for _ in range(15):
        flush.zero_()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        call()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
    print(f"torch {name:<52} {sorted(times)[7] * 1e3:9.1f} us", flush=True)


def rand(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


for tokens, hidden, inner in ((8192, 1024, 3072), (8192, 4096, 14336), (128, 1024, 3072)):
    x, w = rand(tokens, hidden).requires_grad_(), rand(hidden).requires_grad_()
    line(f"rms_norm {tokens} x {hidden}", lambda: F.rms_norm(x, (hidden,), w, 1e-6))
    g, u = rand(tokens, inner), rand(tokens, inner)
    line(f"silu * up {tokens} x {inner}", lambda: F.silu(g) * u)
for n, k in ((4096, 1024), (1024, 2048), (6144, 1024), (1024, 3072), (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)):
    w = rand(n, k)
    for m in (16, 64, 128, 256, 2048, 8192):
        x = rand(m, k)
        line(f"linear {m} {n} {k}", lambda: F.linear(x, w))
for width, vocab in ((1024, 151936), (4096, 128256)):
    logits = rand(2048, vocab)
    target = torch.randint(vocab, (2048, 1), device="cuda")

    def log_prob_entropy():
        l = torch.log_softmax(logits.float(), -1)
        return l.gather(1, target), -(l.exp() * l).sum(-1)

    line(f"log-prob and entropy 2048 x {vocab}", log_prob_entropy)
    few = rand(128, vocab)
    line(f"softmax and multinomial 128 x {vocab}", lambda: torch.multinomial(torch.softmax(few.float(), -1), 1))
    del logits
p = torch.nn.Parameter(torch.randn(596049920, device="cuda"))
p.grad = torch.randn_like(p)
adamw = torch.optim.AdamW([p], lr=1e-6, fused=True)
line("fused AdamW 596049920, f32", adamw.step)
