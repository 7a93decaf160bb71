"""The golden files: what a telling selection of presets becomes for each target.

`.venv/bin/python -m tests.unit.deploy.targets.golden` writes them anew; the diff shows what changed.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import by_uuid, rendered, wanted_of

FOLDER = Path(__file__).parent / "golden_files"
REWRITE = ".venv/bin/python -m tests.unit.deploy.targets.golden"
_T = RenderTarget
# Each target and each engine at least once, each kind of start where its targets differ most. Every preset
# is validated for every target in tests/integration/deploy.
SELECTION: dict[str, tuple[RenderTarget, ...]] = {
    # llama.cpp and vLLM on the processor with a model that is here.
    "demo-llamacpp": (_T.SHELL, _T.SYSTEMD, _T.DOCKER),
    "demo-vllm": (_T.PODMAN, _T.QUADLET),
    # Two GPUs by UUID with k8v4, MTP and patches.
    "qwen3.6-27b-k8v4-2x24": (_T.SHELL, _T.SYSTEMD, _T.COMPOSE, _T.KUBERNETES),
    # A GGUF file that has to be fetched, with its whole context.
    "qwen3.6-27b-q4-24": (_T.SHELL, _T.KUBERNETES, _T.QUADLET),
    # Embeddings, and an engine that is not started here.
    "qwen3-embedding-0.6b": (_T.DOCKER,),
    "qwen3.6-35b-a3b-sglang-4xl4": (_T.COMPOSE,),
}
_BY_UUID = {"qwen3.6-27b-k8v4-2x24"}
# The same everywhere, and tested by itself.
_ELSEWHERE = ("watchdog.py", "overlay/")


def golden_files() -> Iterator[tuple[str, str]]:
    """Each golden file's path below the folder, and its text."""
    for preset_id, targets in SELECTION.items():
        wanted = wanted_of(preset_id)
        if preset_id in _BY_UUID:
            wanted = by_uuid(wanted)
        for target in targets:
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
