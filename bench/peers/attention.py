# PyTorch's attention on the shapes of bench/cuda_attention.cu: median milliseconds and TFLOP/s by backend.
import torch, statistics
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention


def milliseconds(f):
    times = []
    for i in range(18):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(), f(), b.record()
        b.synchronize()
        times += [a.elapsed_time(b)] if i > 2 else []
    return statistics.median(times)


for sequences, length, heads, kv_heads, head_dim in [(8, 2048, 32, 8, 128), (2, 8192, 32, 8, 128), (8, 2048, 32, 8, 64)]:
    def values(h):
        return torch.randn(sequences, h, length, head_dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)

    q, k, v = values(heads), values(kv_heads), values(kv_heads)
    flop = 2 * sequences * length**2 * heads * head_dim
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend):
            out = attention(q, k, v, is_causal=True, enable_gqa=True)
            d = torch.randn_like(out)
            forward = milliseconds(lambda: attention(q, k, v, is_causal=True, enable_gqa=True))
            backward = milliseconds(lambda: torch.autograd.grad(out, (q, k, v), d, retain_graph=True))
            print(f"torch {name} {sequences} x {length}, {heads}/{kv_heads} heads of {head_dim}: forward {forward:.3f} ms "
                  f"{flop / forward * 1e-9:.0f} TFLOP/s   backward {backward:.3f} ms {2.5 * flop / backward * 1e-9:.0f} TFLOP/s", flush=True)
