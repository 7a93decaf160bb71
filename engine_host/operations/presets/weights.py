"""The weights of a preset: which files of this machine they are, and how to get those that are not here."""

import shlex
from collections.abc import Sequence

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.package_data import resources
from engine_host.core.sizes import size_text
from engine_host.launch.preflight.vllm import drafter_missing
from engine_host.library.hub.choices import CHECKPOINT
from engine_host.library.of_catalog import Match, from_repository, match, weights_files, wrong_files
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import Variant
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.models import ModelFile
from engine_host.protocol.presets import ResolvedPreset


def weights_of(resolved: ResolvedPreset) -> Variant:
    """The weights that a preset is for."""
    variant = resolved.model.variant(resolved.preset.variant)
    assert variant is not None, "the catalogue keeps no preset without its variant"
    return variant


def weights_here(resolved: ResolvedPreset, models: Sequence[ModelFile]) -> Match:
    """The models of this machine that are a preset's weights."""
    return match(weights_of(resolved), models, resources())


def weights_finding(resolved: ResolvedPreset, here: Match) -> Finding | None:
    """Return why a preset's weights cannot be chosen among the models here; None when they can.

    Nothing is fetched.
    """
    variant, title = weights_of(resolved), resolved.model.title
    if here.ambiguous:
        paths = [one.path for one in here.found]
        return finding(
            "weights.ambiguous",
            command=_launch(resolved, paths[0]),
            title=title,
            quantization=variant.quantization,
            models=paths,
        )
    broken = next((one for one in here.found[:1] if one.problem is not None), None)
    if broken is not None and broken.problem is not None:
        return finding(
            "weights.damaged",
            reason=broken.problem.reason,
            fix=fetch(resolved),
            evidence=broken.problem.evidence,
            path=broken.path,
            problem=broken.problem.message,
        )
    if here.found:
        return None
    if here.others:
        other = here.others[0]
        return finding(
            "weights.other_size",
            command=fetch(resolved).command,
            path=other.path,
            size=other.size,
            expected=variant.size or 0,
            title=title,
            quantization=variant.quantization,
            as_it_is=_launch(resolved, other.path),
        )
    return finding(
        "weights.missing",
        fix=fetch(resolved),
        evidence={
            "repository": variant.repository,
            "revision": variant.revision,
            "files": [file.name for file in weights_files(variant)],
            "size": variant.size,
        },
        title=title,
        quantization=variant.quantization,
        size_text="" if variant.size is None else size_text(variant.size),
        where=variant.repository or "the program's own files",
    )


def files_finding(resolved: ResolvedPreset, model: ModelFile) -> Finding | None:
    """Files that the catalogue lists and that are not there, or not as large; None when all is well.

    Looks at the disk, at sizes alone.
    """
    wrong = wrong_files(weights_of(resolved), model)
    if not wrong:
        return None
    said = [
        f"{file.name} is not there" if size is None else f"{file.name} has {size:,} bytes, not {file.size:,}"
        for file, size in wrong
    ]
    weights = any(file.role == "weights" for file, _ in wrong)
    return finding(
        "weights.files",
        severity=Severity.ERROR if weights else Severity.WARNING,
        fix=fetch(resolved),
        evidence={"files": [file.name for file, _ in wrong]},
        path=model.path,
        wrong="; ".join(said),
    )


def by_name(resolved: ResolvedPreset, model: ModelFile) -> Finding:
    """That a model was taken for a preset's weights by its name alone."""
    variant = weights_of(resolved)
    return finding(
        "weights.by_name",
        command=_launch(resolved, "PATH"),
        path=model.path,
        repository=variant.repository,
        title=resolved.model.title,
        quantization=variant.quantization,
    )


def chosen(resolved: ResolvedPreset, models: Sequence[ModelFile]) -> ModelFile:
    """The model of this machine that a preset starts.

    Raises HostError(model_file_missing), HostError(model_file_damaged) and HostError(conflict) that say how
    to get it or which to name.
    """
    here = weights_here(resolved, models)
    finding = weights_finding(resolved, here)
    if finding is None:
        return here.found[0]
    raise HostError(
        finding.reason or Reason.MODEL_FILE_MISSING,
        finding.message,
        cause="Nothing is downloaded unasked." if finding.id == "weights.missing" else "",
        fix=finding.fix or Fix(text="Name the model.", command=_launch(resolved, "PATH")),
        evidence={"preset": resolved.preset.id} | finding.evidence,
    )


def drafter_finding(resolved: ResolvedPreset, models: Sequence[ModelFile]) -> Finding | None:
    """Return why a preset's drafting model cannot be used; None where it can, or none is needed."""
    drafter = next((one for one in resolved.model.drafters if one.id == resolved.preset.drafter), None)
    if drafter is None or drafter.repository is None:
        return None
    if any(from_repository(drafter.repository, one.path) for one in models):
        return None
    return drafter_missing(drafter.repository)


def download_command(variant: Variant) -> str | None:
    """The command that downloads weights from Hugging Face; None for those that ship with the program."""
    if variant.repository is None:
        return None
    words = ["sndr", "models", "download", variant.repository]
    if variant.revision is not None:
        words += ["--revision", variant.revision]
    if variant.format == "safetensors":
        return shlex.join([*words, "--choice", CHECKPOINT])
    # A repository holds the same model in many quantisations, and names them by their last word.
    names = [file.name for file in weights_files(variant)]
    words += ["--choice", names[0] if names else variant.quantization.split()[-1]]
    beside = (file.name for file in variant.files if file.role in {"mmproj", "drafter"})
    return shlex.join([*words, *(word for name in beside for word in ("--companion", name))])


def fetch(resolved: ResolvedPreset) -> Fix:
    """Say how to get a preset's weights, or name a file that somebody has."""
    command = download_command(weights_of(resolved))
    if command is None:
        return Fix(text="Set the program up again, in its folder.", command="make setup")
    return Fix(
        text=tr(
            "Download it. Or name a file that you have: {launch}",
            launch=_launch(resolved, "PATH"),
        ),
        command=command,
    )


def _launch(resolved: ResolvedPreset, path: str) -> str:
    return shlex.join(["sndr", "launch", resolved.preset.id, "--model", path])
