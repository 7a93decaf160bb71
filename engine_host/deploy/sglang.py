"""SGLang's arguments: this program starts no SGLang itself, so nothing else writes them.

The names are those of `python -m sglang.launch_server --help` as SGLang documents them for 0.5.
"""

from collections.abc import Mapping

from engine_host.core.findings.table import finding
from engine_host.deploy.spec import DeploySpec
from engine_host.protocol.plans import Finding

_FLAGS: Mapping[str, str] = {
    "context": "--context-length",
    "streams": "--max-running-requests",
    "tensor_parallel": "--tp-size",
    "gpu_memory": "--mem-fraction-static",
    "batched_tokens": "--chunked-prefill-size",
    "dtype": "--dtype",
    "tool_parser": "--tool-call-parser",
    "reasoning_parser": "--reasoning-parser",
}
# What a setting means there that is a word here: by its value, none where it is what SGLang does anyway.
_WORDS: Mapping[str, Mapping[object, tuple[str, ...]]] = {
    "eager": {True: ("--disable-cuda-graph",), False: ()},
    "prefix_caching": {True: (), False: ("--disable-radix-cache",)},
    "batch_invariant": {True: ("--enable-deterministic-inference",), False: ()},
    "embeddings": {True: ("--is-embedding",), False: ()},
    "dummy_weights": {True: ("--load-format", "dummy"), False: ()},
    "kv_cache_dtype": {
        "auto": (),
        "bfloat16": ("--kv-cache-dtype", "bf16"),
        "fp8": ("--kv-cache-dtype", "fp8_e4m3"),
        "fp8_e4m3": ("--kv-cache-dtype", "fp8_e4m3"),
        "fp8_e5m2": ("--kv-cache-dtype", "fp8_e5m2"),
    },
    "speculation": {"off": ()},
}
_SILENT = {"extra_arguments", "draft_tokens", "name", "keep"}
_NONE = (None, "off", "auto")


def arguments(wanted: DeploySpec, model: str) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """The arguments of a start, and a finding for each setting that has no counterpart there."""
    argv = ["--model-path", model, "--served-model-name", wanted.alias]
    if wanted.model.revision and wanted.model.path is None:
        argv += ["--revision", wanted.model.revision]
    lost: list[str] = []
    for name, value in wanted.values.items():
        if name in _SILENT or value is None:
            continue
        if name in _FLAGS:
            argv += [] if value in _NONE else [_FLAGS[name], str(value)]
        elif name in _WORDS and value in _WORDS[name]:
            argv += _WORDS[name][value]
        else:
            lost.append(f"{name}={value}")
    argv += wanted.extra()
    return tuple(argv), tuple(_lost(one) for one in lost)


def _lost(setting: str) -> Finding:
    return finding("render.setting-without-counterpart", setting=setting)
