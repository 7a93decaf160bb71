"""vLLM's own TurboQuant kernels without vLLM: what `bench.py` measures ours against.

They need the Python files of a vLLM wheel (0.32 or 0.33), and stand-ins for the few modules of it that they
import.
"""

import importlib
import math
import sys
import types
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

PACKAGES = (
    "vllm",
    "vllm.v1",
    "vllm.v1.attention",
    "vllm.v1.attention.ops",
    "vllm.v1.attention.ops.turboquant_soa",
    "vllm.model_executor",
    "vllm.model_executor.layers",
    "vllm.model_executor.layers.quantization",
    "vllm.model_executor.layers.quantization.turboquant",
    "vllm.utils",
)


class _Platform:
    """An NVIDIA GPU, as far as the kernels ask."""

    def is_cuda(self) -> bool:
        return True

    def is_cuda_alike(self) -> bool:
        return True

    def fp8_dtype(self) -> torch.dtype:
        return torch.float8_e4m3fn

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: False


class _Silent:
    """A logger that says nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class _CacheModes:
    NONE, FP8_PER_TENSOR, INT8_PER_TOKEN_HEAD, FP8_PER_TOKEN_HEAD, INT4_PER_TOKEN_HEAD, NVFP4 = range(6)


def _module(name: str, **content: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module
    return module


class VllmKernels:
    """The stock kernels and the shipped but unused SoA ones, over k8v4 caches of their own."""

    def __init__(self, folder: Path) -> None:
        for name in PACKAGES:
            _module(name).__path__ = [str(folder.joinpath(*name.split(".")))]
        _module("vllm.platforms", current_platform=_Platform())
        _module("vllm.triton_utils", tl=tl, triton=triton, HAS_TRITON=True)
        _module("vllm.logger", init_logger=lambda name: _Silent())
        _module(
            "vllm.utils.math_utils",
            round_up=lambda a, b: (a + b - 1) // b * b,
            cdiv=lambda a, b: -(-a // b),
            next_power_of_2=triton.next_power_of_2,
        )
        _module("vllm.v1.kv_cache_interface", KVQuantMode=_CacheModes)
        ops = "vllm.v1.attention.ops"
        quantization = "vllm.model_executor.layers.quantization.turboquant"
        self.decode = importlib.import_module(f"{ops}.triton_turboquant_decode")
        self.store = importlib.import_module(f"{ops}.triton_turboquant_store")
        self.soa_store = importlib.import_module(f"{ops}.turboquant_soa.triton_turboquant_store")
        self.soa = importlib.import_module(f"{ops}.turboquant_soa.triton_turboquant_unified_attention")
        self.config = importlib.import_module(f"{quantization}.config").TurboQuantConfig
        self.centroids = importlib.import_module(f"{quantization}.centroids").get_centroids

    def prepare(self, head_size: int, hadamard: torch.Tensor) -> None:
        """Fix the head size; hadamard: fp32 [head_size, head_size] on the GPU."""
        self.settings = self.config.from_cache_dtype("turboquant_k8v4", head_size)
        self.hadamard = hadamard
        self.levels = self.centroids(head_size, self.settings.centroid_bits).float().to(hadamard.device)
        ordered, _ = self.levels.sort()
        self.bounds = (ordered[1:] + ordered[:-1]) / 2
        self.scale = 1 / math.sqrt(head_size)

    def slot_bytes(self) -> int:
        return int(self.settings.slot_size_aligned)

    def fill(
        self,
        keys: torch.Tensor,
        values: torch.Tensor,
        stock: torch.Tensor,
        soa: torch.Tensor,
        slots: torch.Tensor,
    ) -> None:
        """Store tokens in both of vLLM's layouts: caches uint8 [blocks, block, kv_heads, slot]."""
        chosen = self.settings
        bits, size, value_bits = (
            chosen.key_mse_bits,
            chosen.key_packed_size,
            chosen.effective_value_quant_bits,
        )
        self.store.triton_turboquant_store(
            keys,
            values,
            stock,
            slots,
            self.hadamard,
            self.bounds,
            bits,
            size,
            value_bits,
            key_fp8=chosen.key_fp8,
        )
        self.soa_store.triton_turboquant_store(
            key=keys,
            value=values,
            kv_cache=soa,
            slot_mapping=slots,
            PiT=self.hadamard,
            midpoints=self.bounds,
            mse_bits=bits,
            key_packed_size=size,
            value_quant_bits=value_bits,
            key_fp8=chosen.key_fp8,
            centroids=self.levels,
            norm_correction=chosen.norm_correction,
        )

    def _common(self) -> dict[str, Any]:
        chosen = self.settings
        return {
            "Pi": self.hadamard,
            "PiT": self.hadamard,
            "centroids": self.levels,
            "scale": self.scale,
            "mse_bits": chosen.key_mse_bits,
            "key_packed_size": chosen.key_packed_size,
            "value_quant_bits": chosen.effective_value_quant_bits,
            "key_fp8": chosen.key_fp8,
            "norm_correction": chosen.norm_correction,
        }

    def attend_stock(
        self, query: torch.Tensor, cache: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        """The kernel in use: one row a query, so verification repeats a request's table row."""
        result: torch.Tensor = self.decode.triton_turboquant_decode_attention(
            query, cache, table, lengths, max_num_kv_splits=32, **self._common()
        )
        return result

    def attend_soa(
        self,
        query: torch.Tensor,
        cache: torch.Tensor,
        table: torch.Tensor,
        lengths: torch.Tensor,
        starts: torch.Tensor,
        most: int,
        splits: int,
    ) -> torch.Tensor:
        """The kernel that ships unused, on its split path."""
        result: torch.Tensor = self.soa.triton_turboquant_unified_attention(
            query=query,
            kv_cache=cache,
            block_table=table,
            seq_lens=lengths,
            query_start_loc=starts,
            value_packed_size=self.settings.value_packed_size,
            max_query_len=1,
            max_seq_len=most,
            num_kv_splits=splits,
            **self._common(),
        )
        return result
