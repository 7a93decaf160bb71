"""vLLM's own function over stand-ins for both kernels: Triton's, and the fused one, whose threads need a GPU.

On an H200, rows of 1024 bf16 numbers normed in steps of 2048 and of 255 tokens differed, rows of 512 did not;
answers of a model of that width differed between chunks of 1024 and 2048 tokens (docs/kernels.md).
"""

from tests.overlay_engine import run_in_engine

ID = "batch-invariant-residual-norm"
SCRIPT = """
import json
import torch
import vllm._custom_ops as ops
import vllm.model_executor.determinism.batch_invariant as module
from vllm.model_executor.determinism.batch_invariant import rms_norm_batch_invariant
from vllm.model_executor.layers import layernorm


class Kernel:
    def __getitem__(self, grid):
        def run(rows, weight, out, row_stride, out_stride, columns, eps, **options):
            out.copy_(rows * torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + eps) * weight)

        return run


module._rms_norm_kernel = Kernel()
fused = []
ops.fused_add_rms_norm = lambda *given: fused.append(given)
torch.manual_seed(0)
x, residual = torch.randn(2, 6, 1024).unbind(0)
weight = torch.randn(1024)
total = x + residual
answer, kept = rms_norm_batch_invariant(x.clone(), weight, 1e-5, residual=residual.clone())
wanted = total * torch.rsqrt(total.double().pow(2).mean(-1, keepdim=True) + 1e-5) * weight
alone = rms_norm_batch_invariant(total.clone(), weight, 1e-5)
print(json.dumps({
    "fused": len(fused),
    "error": float((answer - wanted).abs().max()),
    "residual": bool((kept == total).all()),
    "as without": bool((answer == alone).all()),
    "layers": layernorm.rms_norm_batch_invariant is rms_norm_batch_invariant,
}))
"""


def test_a_residual_takes_the_kernel_of_the_norm_without_one() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer["fused"] == 1, "the symptom: a kernel whose threads follow the number of tokens"
    patched = run_in_engine(SCRIPT, [ID])
    assert patched.outcome(ID) == "applied", patched.stderr
    assert patched.answer["fused"] == 0
    assert patched.answer["error"] < 1e-5
    assert patched.answer["residual"]
    assert patched.answer["as without"]
    assert patched.answer["layers"]
