"""Models, choices of the hub, downloads and the trash as lines."""

import time

from engine_host.cli.output import size
from engine_host.cli.text.tables import table
from engine_host.core.sizes import duration
from engine_host.protocol.library import (
    HubChoice,
    HubFiles,
    HubSearch,
    LibraryPage,
    UnfinishedDownload,
    VerifiedModel,
)
from engine_host.protocol.models import ModelFile, ModelPage

MARKS = {True: "✓", False: "WRONG", None: "UNVERIFIED"}


def model_lines(page: ModelPage) -> list[str]:
    """Return the models of this machine as a table."""
    rows = [
        (
            model.id,
            model.format,
            model.quantization or "-",
            size(model.size),
            str(model.context or "-"),
            model.found_in,
            _state(model),
        )
        for model in page.models
    ]
    headings = ("model", "format", "type", "size", "context", "found in", "note")
    return table(headings, rows) if rows else ["No models found."]


def _state(model: ModelFile) -> str:
    if model.problem is not None:
        return model.problem.message
    notes = ["no weights: runs with random ones"] if model.format == "shape" else []
    if model.verified is not None:
        notes.append("✓ verified" if model.verified else "WRONG: its hash is another than promised")
    if model.mtp_layers:
        notes.append("drafts its own next tokens (MTP)")
    if model.companions:
        notes.append("with a projector (mmproj)")
    return ", ".join(notes)


def found_lines(found: HubSearch) -> list[str]:
    """Return the result of a search as a table."""
    rows = [
        (
            one.repository,
            " ".join(form for form, has in (("GGUF", one.gguf), ("safetensors", one.safetensors)) if has)
            or "-",
            f"{one.downloads:,}" if one.downloads is not None else "-",
            one.updated or "-",
            "gated" if one.gated else "",
        )
        for one in found.models
    ]
    if not rows:
        return [f"{found.endpoint} knows no model for {found.words!r}."]
    first = found.models[0].repository
    lines = table(("model", "format", "downloads", "updated", "note"), rows)
    return [*lines, "", f"Its files:  sndr models files {first}"]


def choice_lines(found: HubFiles, only: HubChoice | None = None) -> list[str]:
    """Return what can be downloaded of a repository."""
    lines = [f"{found.repository} at {found.commit}"]
    if found.licence:
        lines[0] += f", licence {found.licence}"
    if found.gated and not found.has_token:
        lines.append("It is gated: accept its licence on the hub, then start the host with HF_TOKEN set.")
    rows = [
        (
            one.label,
            one.format,
            size(one.size),
            str(len(one.files)),
            "here" if one.here >= one.size else f"{size(one.here)} here" if one.here else "",
            "✓" if all(file.hashed for file in one.files) else "no hash",
        )
        for one in ([only] if only is not None else found.choices)
    ]
    if not rows:
        return [*lines, "Nothing of it can be downloaded: no GGUF file, no safetensors with a config.json."]
    lines += ["", *table(("choice", "format", "size", "files", "on this machine", "hash"), rows)]
    beside = {
        file.name: file for one in ([only] if only is not None else found.choices) for file in one.companions
    }
    lines += [f"--companion {name}: {file.kind}, {size(file.size)}" for name, file in sorted(beside.items())]
    return [*lines, "", f"It goes to {found.folder}, where {size(found.free)} are free."]


def verified_lines(found: VerifiedModel) -> list[str]:
    """Return each file with its mark."""
    return [
        f"{MARKS[file.right]} {file.name}  {file.sha256}"
        + (f", promised is {file.expected}" if file.right is False else "")
        for file in found.files
    ] + ([] if found.right is not None else ["UNVERIFIED: nothing here says what their hashes should be."])


def library_lines(page: LibraryPage) -> list[str]:
    """Return downloads, the trash and the disk."""
    lines = [f"Downloads go to {page.folder}, where {size(page.free)} are free."]
    if page.offline:
        lines.append("Offline: HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set, so the hub is not asked.")
    for one in page.downloads:
        lines += ["", *_download(one)]
    now = time.time()
    for gone in page.trash:
        left = duration(max(0.0, gone.gone_at - now))
        lines += ["", f"deleted: {gone.model} ({size(gone.size)}), gone for good in {left}"]
        lines.append(f"  back:      sndr models restore {gone.id}")
    if not page.downloads and not page.trash:
        lines.append("No download is unfinished, and nothing waits in the trash.")
    return lines


def _download(one: UnfinishedDownload) -> list[str]:
    state = f"job {one.job}" if one.job is not None else "paused"
    lines = [f"{one.asked.repository} {one.label}: {size(one.here)} of {size(one.size)}, {state}"]
    if one.problem is not None:
        lines.append(f"  {one.problem.sentence()}")
    if one.job is None:
        lines += [f"  go on:     {one.command}", f"  give up:   sndr models discard {one.id}"]
    return lines
