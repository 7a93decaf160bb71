"""The golden files: what a telling selection of presets becomes for each target.

`.venv/bin/python -m tests.unit.deploy.targets.golden` writes them anew; the diff shows what changed.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from engine_host.protocol.deploy import RenderTarget
from tests.unit.deploy.samples import by_uuid, rendered, wanted_of

FOLDER = Path(__file__).parent / "golden_files"
REWRITE = ".venv/bin/python -m tests.unit.deploy.targets.golden"
# llama.cpp and vLLM on the processor with a model here; two GPUs by UUID with k8v4, MTP and patches; a GGUF
# file that has to be fetched, with its whole context; embeddings; an engine that is not started here.
SELECTION = (
    "demo-llamacpp",
    "demo-vllm",
    "qwen3.6-27b-k8v4-2x24",
    "qwen3.6-27b-q4-24",
    "qwen3-embedding-0.6b",
    "qwen3.6-35b-a3b-sglang-4xl4",
)
_BY_UUID = {"qwen3.6-27b-k8v4-2x24"}
# The same everywhere, and tested by itself.
_ELSEWHERE = ("watchdog.py", "overlay/")


def golden_files() -> Iterator[tuple[str, str]]:
    """Each golden file's path below the folder, and its text."""
    for preset_id in SELECTION:
        wanted = wanted_of(preset_id)
        if preset_id in _BY_UUID:
            wanted = by_uuid(wanted)
        for target in RenderTarget:
            made = rendered(wanted, target)
            for file in made.files:
                if not file.name.startswith(_ELSEWHERE):
                    yield f"{preset_id}/{target.value}/{file.name}", file.text
            findings = "".join(f"{one.severity.value} {one.id}: {one.message}\n" for one in made.findings)
            said = f"check: {made.check}\nstart: {made.start}\nstop: {made.stop}\n{findings}"
            yield f"{preset_id}/{target.value}/said.txt", said


def rewrite() -> None:
    """Write all of them, and remove those that are not made any more."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, text in golden_files():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
