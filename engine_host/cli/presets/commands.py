"""`sndr presets`: the catalogue, what a preset resolves to and why, and a person's own presets."""

import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.param_types import FiniteRange, PresetId, counted_hardware
from engine_host.cli.start.consent import accept_option, with_consent
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import overrides_of
from engine_host.cli.start.reading import reading
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError, consent_needed
from engine_host.core.likely_causes import unwritable_folder
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import Evidence, PresetEngine, PresetStatus, Workload
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.launch.plans import Layer
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    CatalogFault,
    ImportPreset,
    LintPreset,
    PresetDetail,
    PresetItem,
    PresetLint,
    ResolvedPreset,
    ResolvePreset,
    SavePreset,
    SetBy,
)

_STATUSES = {
    PresetStatus.VERIFIED: "this project ran it as it is, with its settings",
    PresetStatus.REPORTED: "others published figures for it; not run by this project",
    PresetStatus.COMPUTED: "estimated to fit in memory; nobody measured it",
    PresetStatus.EXPERIMENTAL: "it ran somewhere, with known problems",
    PresetStatus.PREVIEW: "it ran somewhere, and is not finished",
    PresetStatus.UPSTREAM_GATED: "it waits for a fix in the engine (llama.cpp, vLLM or SGLang)",
    PresetStatus.DEPRECATED: "do not use it for new setups",
}
"""The legend of the list; of the statuses in it each gets a line."""


@click.group(cls=WholeHelp)
def presets() -> None:
    """See the presets, what each resolves to and why, and keep your own."""


@presets.command("list")
@click.option(
    "--status",
    metavar="STATUS",
    type=click.Choice([one.value for one in PresetStatus]),
    multiple=True,
    help=f"Repeatable: {', '.join(PresetStatus)}.",
)
@click.option(
    "--workload",
    metavar="WORKLOAD",
    type=click.Choice([one.value for one in Workload]),
    multiple=True,
    help=f"Repeatable: {', '.join(Workload)}.",
)
@click.option("--engine", type=click.Choice([one.value for one in PresetEngine]))
@click.option("--family", help="Only models of this family, such as qwen3.6.")
@click.option("--gpus", type=click.IntRange(0, 8), help="Only what runs on so many GPUs or fewer.")
@click.option("--vram", type=FiniteRange(0), help="Only what runs on GPUs with so many GiB each.")
@command("sndr presets list", "sndr presets list --engine vllm --vram 24")
def list_presets(
    out: Output,
    status: tuple[str, ...],
    workload: tuple[str, ...],
    engine: str | None,
    family: str | None,
    gpus: int | None,
    vram: float | None,
) -> Exit | None:
    """List the presets."""
    with reading() as host:
        page = host.call(ops.PRESETS)

    def fits(item: PresetItem) -> bool:
        preset = item.preset
        return (
            (not status or preset.card.status in status)
            and (not workload or bool(set(workload) & set(preset.card.good_for)))
            and (engine is None or preset.engine == engine)
            and (family is None or item.family == family)
            and (gpus is None or preset.needs.gpus <= gpus)
            and (vram is None or preset.needs.vram_gib is None or preset.needs.vram_gib <= vram)
        )

    shown = tuple(item for item in page.presets if fits(item))
    rows = [
        (
            item.preset.id,
            item.preset.card.status.value,
            item.preset.engine.value,
            item.preset.needs.short,
            "own" if item.origin == "user" else "program",
            item.preset.title,
        )
        for item in shown
    ]
    headings = ("preset", "status", "engine", "needs", "from", "title")
    lines = table(headings, rows) if rows else ["No preset is like that."]
    if rows:
        there = {item.preset.card.status for item in shown}
        lines += ["", *(f"{status.value}: {told}" for status, told in _STATUSES.items() if status in there)]
    lines += fault_lines(page.faults)
    out.result(page.model_copy(update={"presets": shown}), lines)
    return None


@presets.command("hardware")
@command("sndr presets hardware")
def hardware(out: Output) -> Exit | None:
    """List the GPUs that presets can be resolved for."""
    with reading() as host:
        page = host.call(ops.CATALOG)
    rows = [
        (
            gpu.id,
            gpu.title,
            gpu.sm,
            f"{gpu.vram_mib.value / 1024:.0f} GiB",
            f"{gpu.bandwidth_gb_s.value:,.0f} GB/s",
            ", ".join(gpu.formats),
        )
        for gpu in page.hardware
    ]
    lines = table(("hardware", "GPU", "SM", "memory", "bandwidth", "arithmetic"), rows)
    if page.here is not None:
        known = page.here.hardware or "which is not in the catalogue"
        lines += ["", f"Here: {page.here.count} × {page.here.name} ({known})."]
    here = page.here.model_dump(mode="json") if page.here else None
    entries = [gpu.model_dump(mode="json") for gpu in page.hardware]
    out.result({"hardware": entries, "here": here}, lines)
    return None


@presets.command("show")
@click.argument("preset")
@command("sndr presets show qwen3-8b-k8v4-24")
def show(out: Output, preset: str) -> Exit | None:
    """Show one preset: its card, its model and its settings with where each is from."""
    with reading() as host:
        detail = host.call(ops.PRESET, id=preset)
    out.result(detail, [*_card_lines(detail), "", *_setting_lines(detail.resolved)])
    return None


@presets.command("resolve")
@click.argument("preset")
@click.option(
    "--hardware", metavar="[N x ]ID", help="Of `sndr presets hardware`, e.g. `2x rtx-3090`, or `here`."
)
@click.option(
    "--count",
    type=click.IntRange(1, 8),
    help="How many of them (default: as many as it needs, or as there are here).",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An override.")
@command("sndr presets resolve qwen3-8b-k8v4-24 --hardware rtx-3090")
def resolve(
    out: Output, preset: str, hardware: str | None, count: int | None, settings: tuple[str, ...]
) -> Exit | None:
    """Say what a preset comes to, and which layer set each value.

    The exit code is 6 when layers contradict each other, 2 when a value that was given here does, 5 when the
    hardware lacks something that the preset needs.
    """
    hardware, count = counted_hardware(hardware, count)
    if count is not None and hardware is None:
        raise click.UsageError("--count goes with --hardware.")
    request = ResolvePreset(preset=preset, hardware=hardware, count=count, overrides=overrides_of(settings))
    with reading() as host:
        found = host.call(ops.RESOLVE_PRESET, request)
    lines = _setting_lines(found)
    for finding in found.findings:
        lines += ["", f"{finding.severity.value.capitalize()}: {finding.message}"]
    for conflict in found.conflicts:
        lines += ["", f"Conflict: {conflict.message}.", f"  Why: {conflict.because}."]
    out.result(found, lines)
    if not found.conflicts:
        lacks = any(finding.severity is Severity.ERROR for finding in found.findings)
        return Exit.ENGINE if lacks else None
    given = any(Layer.OVERRIDE in {one.by.layer, one.limit.layer} for one in found.conflicts)
    return Exit.USAGE if given else Exit.CONFLICT


@presets.command("lint")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@command("sndr presets lint mine.yaml")
def lint(out: Output, files: tuple[Path, ...], strict: bool) -> Exit | None:
    """Check preset FILES, or without any the whole catalogue; 2 when something is wrong."""
    texts = [(file, _read(file)) for file in files]
    faults: list[CatalogFault] = []
    with reading() as host:
        for file, text in texts:
            checked = host.call(ops.LINT_PRESET, LintPreset(text=text))
            faults += [fault.model_copy(update={"file": str(file)}) for fault in checked.faults]
        if not files:
            page = host.call(ops.PRESETS)
            faults += page.faults
            for item in page.presets:
                request = ResolvePreset(preset=item.preset.id)
                found = host.call(ops.RESOLVE_PRESET, request)
                faults += [_conflict(conflict.by, conflict.message) for conflict in found.conflicts]
    wrong = [fault for fault in faults if strict or fault.severity is Severity.ERROR]
    count = len(texts) if files else len(page.presets)
    lines = fault_lines(faults) or [f"Nothing is wrong in {count} preset{'' if count == 1 else 's'}."]
    out.result({"presets": count, "faults": [fault.model_dump(mode="json") for fault in faults]}, lines)
    return Exit.USAGE if wrong else None


@presets.command("export")
@click.argument("preset")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (default: stdout).")
@click.option("--replace", is_flag=True, help="Replace the file when it is there.")
@command("sndr presets export qwen3-8b-k8v4-24 --output mine.yaml")
def export(out: Output, preset: str, output: Path | None, replace: bool) -> Exit | None:
    """Write a preset with everything it needs as one file."""
    with reading() as host:
        found = host.call(ops.EXPORT_PRESET, id=preset)
    if output is None:
        out.result(found, found.text.rstrip("\n"))
        return None
    try:
        with output.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(found.text)
    except FileExistsError as error:
        raise HostError(
            Reason.CONFLICT,
            tr("{output} is there already.", output=output),
            cause="A file is replaced only where that is asked for.",
            fix=Fix(
                text="Choose another name, or replace it.",
                command=shlex.join(["sndr", "presets", "export", preset, "-o", str(output), "--replace"]),
            ),
        ) from error
    except OSError as error:
        raise HostError(
            Reason.NOT_WRITABLE,
            tr("{output} cannot be written: {error}.", output=output, error=error.strerror),
            cause=unwritable_folder(),
            fix=Fix(
                text="Write it into a folder of your own.",
                command=shlex.join(["sndr", "presets", "export", preset, "-o", f"{preset}.yaml"]),
            ),
            evidence={"file": str(output)},
        ) from error
    out.result({"id": found.id, "file": str(output)}, f"{found.id} is in {output}.")
    return None


@presets.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "new_id", metavar="ID", type=PresetId(), help="Give the preset this id.")
@click.option("--replace", is_flag=True, help="Replace your own files of the same ids.")
@accept_option
@command("sndr presets import theirs.yaml --as coder")
def import_preset(
    out: Output, file: Path, new_id: str | None, replace: bool, accept: str | None
) -> Exit | None:
    """Take in an exported FILE (`-` is stdin); nothing is overwritten unasked.

    What it asks for beyond harmless settings is shown first, with what it can do, and needs your consent.
    """
    request = ImportPreset.model_validate({"text": _read(file), "id": new_id, "replace": replace})
    again = ["sndr", "presets", "import", str(file)]
    again += [*(["--as", new_id] if new_id else []), *(["--replace"] if replace else [])]
    with find_or_start() as hold:
        found = with_consent(
            out,
            accept,
            again,
            lambda consent: hold.client.call(
                ops.IMPORT_PRESET, request.model_copy(update={"consent": consent})
            ),
        )
    lines = [
        f"{found.id}: wrote {', '.join(found.written)}." if found.written else f"{found.id} was here already."
    ]
    out.result(found, [*lines, *fault_lines(found.faults)])
    return None


@presets.command("save")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace your own preset of the same id.")
@accept_option
@command("sndr presets save mine.yaml")
def save(out: Output, file: Path, replace: bool, accept: str | None) -> Exit | None:
    """Keep the preset in FILE (`-` is stdin) as one of your own; 2 when something is wrong in it.

    What it asks for beyond harmless settings is shown first, and needs your consent: who wrote the file is
    not known. It counts as your own afterwards.
    """
    text = _read(file)
    with find_or_start() as hold:
        checked = hold.client.call(ops.LINT_PRESET, LintPreset(text=text))
        if checked.preset is None:
            faults = [fault.model_copy(update={"file": str(file)}) for fault in checked.faults]
            return refused(out, faults)
        preset = checked.preset.id
        again = ["sndr", "presets", "save", str(file), *(["--replace"] if replace else [])]
        with_consent(out, accept, again, lambda consent: _check_demands(checked, text, file, consent))
        digest = _current_digest(hold.client, preset) if replace else None
        saved = hold.client.call(ops.SAVE_PRESET, SavePreset(text=text, digest=digest), id=preset)
    out.result(saved, [f"{saved.id} is saved ({saved.file}).", *fault_lines(saved.faults)])
    return None


@presets.command("remove")
@click.argument("preset")
@command("sndr presets remove coder")
def remove(out: Output, preset: str) -> Exit | None:
    """Remove a preset of your own."""
    with find_or_start() as hold:
        found = hold.client.call(ops.REMOVE_PRESET, id=preset)
    out.result(found, f"{found.id} is removed ({found.file}).")
    return None


def _check_demands(checked: PresetLint, text: str, file: Path, consent: str | None) -> None:
    """Raise HostError(consent_needed) for a file that asks for more than harmless settings."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not checked.demands or consent == digest:
        return
    asked = tuple(one.model_copy(update={"file": str(file)}) for one in checked.demands)
    needed = ConsentNeeded(digest=digest, demands=asked, contents=(digest,))
    raise consent_needed(needed, tr("keeping it as your own"), None)


def _current_digest(client: ControlClient, preset: str) -> str | None:
    """Return the digest of the file to be replaced; None when there is none."""
    try:
        return client.call(ops.PRESET_FILE, id=preset).digest
    except HostError as error:
        if error.reason is Reason.NOT_FOUND:
            return None
        raise


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        folder = isinstance(error, IsADirectoryError)
        raise HostError(
            Reason.NOT_FOUND,
            tr("{file} is a folder, not a file.", file=file)
            if folder
            else tr("{file} cannot be read: {error}.", file=file, error=error.strerror),
            fix="Name the files in it." if folder else "Check the path; `-` reads standard input.",
            evidence={"file": str(file)},
        ) from error
    except UnicodeDecodeError as error:
        raise HostError(
            Reason.PRESET_INVALID,
            tr("{file} is not UTF-8 text.", file=file),
            cause="It was saved in another encoding, or is no text.",
            fix="Save it as UTF-8.",
        ) from error


def _card_lines(detail: PresetDetail) -> list[str]:
    preset, model = detail.item.preset, detail.model
    card = preset.card
    lines = [f"{preset.id}: {preset.title}", f"  {preset.summary}"]
    lines.append(f"  {model.title} ({preset.variant}, {size(detail.item.size)}) on {preset.engine.value}")
    known = f"; reported to run on {', '.join(preset.needs.known_good)}" if preset.needs.known_good else ""
    lines.append(f"  needs {preset.needs.words}{known}")
    lines.append(f"  status {card.status.value}; for {card.audience}; good for {', '.join(card.good_for)}")
    lines += [f"  caveat: {caveat}" for caveat in card.caveats]
    for entry in card.do_not_use:
        instead = f" (use {entry.instead})" if entry.instead else ""
        lines.append(f"  not when {entry.when}: {entry.because}{instead}")
    lines += [f"  {_measured(one)}" for one in card.evidence]
    if card.fallback:
        lines.append(f"  if it does not run: {card.fallback}")
    if detail.item.startable:
        lines.append(f"  start it: sndr launch {preset.id}; what it needs: sndr fit --preset {preset.id}")
    else:
        lines.append(f"  This program does not start {preset.engine.value} itself.")
        lines.append(f"  write its start down: sndr launch {preset.id} --render docker")
    return lines


def _measured(one: Evidence) -> str:
    value = "" if one.value is None else f": {one.value:.12g} {one.unit}".rstrip()
    conditions = f"; {one.conditions}" if one.conditions else ""
    source = "measured by the project" if one.by == "us" else "reported by others"
    return f"{source}: {one.metric}{value} ({one.machine}, {one.pin}{conditions}; {one.source})"


def _setting_lines(found: ResolvedPreset) -> list[str]:
    rows = [
        (
            setting.name,
            _value(setting.value),
            setting.by.layer.value,
            _place(setting.by),
            "; ".join(f"{_value(by.value)} ({by.layer.value})" for by in setting.over),
        )
        for setting in found.settings
    ]
    return table(("setting", "value", "layer", "from", "overrides"), rows)


def _value(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _place(by: SetBy | CatalogFault) -> str:
    place = by.file if by.line is None else f"{by.file}:{by.line}"
    return place or "given here"


def _conflict(by: SetBy, message: str) -> CatalogFault:
    return CatalogFault(severity=Severity.ERROR, file=by.file, line=by.line, key=by.key, message=message)


def refused(out: Output, faults: Sequence[CatalogFault]) -> Exit:
    """Say why a preset is not kept; as an error, and so not where results go."""
    if out.as_json:
        out.record({"faults": [fault.model_dump(mode="json") for fault in faults]})
    else:
        out.note("\n".join(fault_lines(faults)))
    return Exit.USAGE


def fault_lines(faults: Sequence[CatalogFault]) -> list[str]:
    """Format faults, each with its place and its fix."""
    lines = []
    for fault in faults:
        place = _place(fault)
        key = f"{fault.key}: " if fault.key else ""
        lines.append(f"{fault.severity.value} {place}: {key}{fault.message}.")
        if fault.fix:
            lines.append(f"  What to do: {fault.fix}")
    return lines
