"""A library for view tests: what the hub says, a paused download, a deleted model."""

import time

from engine_host.protocol.library import (
    DownloadModel,
    HubChoice,
    HubCompanion,
    HubFileEntry,
    HubFiles,
    HubModelEntry,
    HubSearch,
    LibraryPage,
    TrashedModel,
    UnfinishedDownload,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "org/model-GGUF"
GIB = 1 << 30


def page(downloads: tuple[UnfinishedDownload, ...], trash: tuple[TrashedModel, ...]) -> LibraryPage:
    """The library with these."""
    return LibraryPage(
        seq=0,
        endpoint="https://huggingface.co",
        offline=False,
        has_token=False,
        folder="/cache/hub",
        free=90 * GIB,
        downloads=downloads,
        trash=trash,
    )


def search(words: str) -> HubSearch:
    """Two models, one of them gated; none for "nothing"."""
    found = (
        HubModelEntry(repository=NAME, downloads=12_345, likes=7, gguf=True, updated="2026-01-02"),
        HubModelEntry(repository="org/gated", safetensors=True, gated=True),
    )
    models = () if words == "nothing" else found
    return HubSearch(words=words, endpoint="https://huggingface.co", models=models)


def choice(label: str, size: int, *, hashed: bool = True, here: int = 0) -> HubChoice:
    """One quantisation in one file, with a projector beside it."""
    name = f"model-{label}.gguf"
    return HubChoice(
        id=name,
        label=label,
        format="GGUF",
        size=size,
        files=(HubFileEntry(name=name, size=size, hashed=hashed, here=here),),
        companions=(HubCompanion(kind="mmproj", name="mmproj-F16.gguf", size=GIB, hashed=True),),
    )


def files() -> HubFiles:
    """Two quantisations of a repository, one without a hash."""
    return HubFiles(
        repository=NAME,
        revision="main",
        commit=COMMIT,
        licence="apache-2.0",
        choices=(choice("Q4_K_M", 4 * GIB), choice("Q8_0", 8 * GIB, hashed=False, here=GIB)),
        folder="/cache/hub",
        free=90 * GIB,
    )


def paused() -> UnfinishedDownload:
    """A download that waits."""
    asked = DownloadModel(repository=NAME, revision=COMMIT, choice="model-Q4_K_M.gguf", named="main")
    return UnfinishedDownload(
        id="d1",
        asked=asked,
        label="Q4_K_M",
        size=4 * GIB,
        here=GIB,
        begun_at=1.0,
        command=f"sndr models download {NAME} --revision {COMMIT} --choice model-Q4_K_M.gguf",
    )


def trashed(model: str) -> TrashedModel:
    """A model that was deleted a moment ago."""
    return TrashedModel(
        id=f"gone-{model}",
        model=model,
        path=f"/models/{model}.gguf",
        found_in="/models",
        size=GIB,
        removed_at=time.time(),
        gone_at=time.time() + 86_000,
    )
