"""A small catalogue on disk, in which a test spoils one thing."""

from pathlib import Path

from engine_host.catalog.index import Catalog
from engine_host.catalog.reader import Place, Reader
from engine_host.protocol.presets import EntryOrigin

ENGINE = """
format: 1
id: vllm
title: vLLM
pin: '1.0'
settings:
  context: 8192
  gpu_memory: 0.9
  streams: 16
limits:
  - setting: kv_cache_dtype
    one_of: [auto, fp8]
    because: it knows no others
sources:
  - about: defaults
    address: here
"""
HARDWARE = """
format: 1
id: card
title: A Card
vendor: nvidia
architecture: ampere
sm: '8.6'
names: [A Card]
vram_mib: {value: 24576, how: published, source: there}
bandwidth_gb_s: {value: 900, how: published, source: there}
nvlink: false
formats: [fp16, bf16]
settings:
  vllm:
    extra_arguments: [--from-hardware]
sources:
  - about: everything
    address: there
"""
MODEL = """
format: 1
id: small
title: Small
family: small
publisher: Somebody
licence: Apache-2.0
tasks: [chat]
modalities: [text]
context: 32768
mtp_layers: 0
shape:
  num_attention_heads: 12
  max_position_embeddings: 32768
variants:
  - id: bf16
    format: safetensors
    quantization: bf16
    repository: somebody/small
  - id: q4
    format: gguf
    quantization: Q4_K_M
    repository: somebody/small-gguf
    settings:
      llama.cpp:
        gpu_layers: 99
settings:
  any:
    streams: 4
  vllm:
    streams: 6
    tool_parser: hermes
sources:
  - about: everything
    address: there
"""
PROFILE = """
format: 1
id: latency
title: Latency
summary: Quick.
good_for: [chat]
settings:
  any:
    streams: 2
  vllm:
    batched_tokens: 2048
"""
PRESET = """
format: 1
id: small-one
title: Small on one card
summary: A test.
model: small
variant: bf16
engine: vllm
profile: latency
needs:
  gpus: 1
  vram_gib: 24
  sm: '8.0'
settings:
  context: 16384
  extra_arguments: [--from-preset]
card:
  status: computed
  caveats: [Nothing was measured.]
  audience: tests
  good_for: [chat]
"""
VARIATION = """
format: 1
id: mine
title: Mine
extends: small-one
settings:
  context: 4096
"""


class Small:
    """The folders of a small catalogue, and a reader of them."""

    def __init__(self, folder: Path) -> None:
        self.shipped, self.own = folder / "shipped", folder / "own"
        for kind, name, text in (
            ("engines", "vllm", ENGINE),
            ("hardware", "card", HARDWARE),
            ("models", "small", MODEL),
            ("profiles", "latency", PROFILE),
            ("presets", "small-one", PRESET),
        ):
            self.write(f"{kind}/{name}", text)
        self.place = Place(self.own, EntryOrigin.USER, "own")
        self.reader = Reader((Place(self.shipped, EntryOrigin.PROGRAM, "shipped"), self.place))

    def write(self, name: str, text: str) -> Path:
        """Write a file of the program's catalogue."""
        return self._write(self.shipped / f"{name}.yaml", text)

    def write_own(self, name: str, text: str) -> Path:
        """Write a file of the person's."""
        return self._write(self.own / f"{name}.yaml", text)

    def read(self) -> Catalog:
        """The catalogue now."""
        return self.reader.read()

    @staticmethod
    def _write(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
        return path
