"""`sndr presets verdicts`: what works on a machine, what works best first, what is missing to start it."""

from collections.abc import Sequence

import click

from engine_host.cli.fit import VERDICTS
from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.param_types import counted_hardware
from engine_host.cli.start.reading import reading
from engine_host.cli.text.tables import paragraph, table
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import JudgePresets, PresetVerdict


@click.command("verdicts")
@click.option(
    "--hardware",
    metavar="[N x ]ID",
    help="Other GPUs, e.g. `2x rtx-3090` (sndr presets hardware), instead of this machine.",
)
@click.option(
    "--count", type=click.IntRange(1, 8), help="How many GPUs (default: those here; one of --hardware)."
)
@click.option("--all", "every", is_flag=True, help="Also what does not fit or cannot run.")
@command("sndr presets verdicts", "sndr presets verdicts --hardware rtx-3090 --count 2")
def verdicts(out: Output, hardware: str | None, count: int | None, every: bool) -> Exit | None:
    """Say which presets would work, what works best first, and what is missing to start each."""
    hardware, count = counted_hardware(hardware, count)
    with reading(memory=True) as host:
        request = JudgePresets(hardware=hardware, count=count)
        page = host.call(ops.JUDGE_PRESETS, request)
    shown = [one for one in page.verdicts if every or one.verdict in _MAY_WORK]
    elsewhere = hardware not in {None, "here"}
    lines = [f"On {page.hardware}:", *_table(shown, elsewhere=elsewhere)]
    if any((one.needed or 0) > (one.room or 0) for one in shown):
        lines += ["", *paragraph(_COUNTED)]
    if any(one.decode is not None for one in shown):
        lines += ["", *(line for text in _SPEEDS for line in paragraph(text))]
    hidden = len(page.verdicts) - len(shown)
    if hidden:
        lines += ["", f"{hidden} more do not fit or cannot run; --all shows them with the reason."]
        lines += _with_more(page.verdicts, hardware, count or 1) if elsewhere else []
    lines += [] if elsewhere else _to_start(shown)
    out.result(page, lines)
    return None


_MAY_WORK = {Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN}
_COUNTED = (
    "Memory is what every stream takes at full length, on each GPU where several share a model. What is "
    "missing with vLLM is what one stream lacks: there further streams wait for room, and where that is "
    "tight it takes all that there is."
)
_SPEEDS = (
    "decode, ≤: tokens a second that the memory's bandwidth allows one stream that has just begun, every "
    "draft accepted, which no usual text reaches.",
    "undrafted, ≤: the same with no draft accepted. What drafts gain above it is decided by the text.",
    "measured: one stream on this very hardware, as the preset's card tells.",
)
# GPUs of one machine.
_MOST = 8
# Of how many presets the steps are told.
_TOLD = 3
# In words what a finding says is missing, by its id; of others the first part of the id says enough.
_WORDS = {
    "preset.gpus": "GPUs",
    "preset.vram": "GPU memory",
    "preset.sm": "a newer GPU",
    "preset.formats": "its arithmetic",
    "preset.nvlink": "NVLink",
    "engine.not_started": "a program that starts its engine",
}
_WORDS_OF = {"weights": "files", "drafter_missing": "files of its drafter", "engine": "engine"}


def _with_more(found: Sequence[PresetVerdict], hardware: str | None, count: int) -> list[str]:
    """Return how many presets need more GPUs than were named, and the command that asks for twice as many."""
    few = sum(any(finding.id == "preset.gpus" for finding in one.missing) for one in found)
    if not few or 2 * count > _MOST:
        return []
    need = "needs" if few == 1 else "need"
    command = f'sndr presets verdicts --hardware "{2 * count}x {hardware}"'
    return [f"{few} of them {need} more GPUs: {command}"]


def _to_start(shown: list[PresetVerdict]) -> list[str]:
    """Return the command for the first ready preset, and the steps for the first few that lack only
    downloads."""
    lines: list[str] = []
    ready = next((one for one in shown if one.model and not one.missing), None)
    if ready is not None:
        lines += ["", f"To start {ready.preset}:", f"  $ sndr launch {ready.preset}"]
    absent = [one for one in shown if one.missing and not any(map(_of_the_machine, one.missing))]
    for one in absent[:_TOLD]:
        lines += ["", f"To start {one.preset}:"]
        for finding in one.missing:
            lines.append(f"  {finding.message}")
            if finding.fix is not None and finding.fix.command:
                lines.append(f"    $ {finding.fix.command}")
    return lines


def _of_the_machine(finding: Finding) -> bool:
    """Return True if nothing that can be fetched or installed is missing."""
    return finding.id.startswith("preset.") or finding.id == "engine.not_started"


def _missing(one: PresetVerdict, *, elsewhere: bool) -> str:
    """List the missing requirements in words; `elsewhere`: the model here says nothing of another machine."""
    words = [word_of(finding.id) or finding.id for finding in one.missing]
    return ", ".join(dict.fromkeys(words)) or ("" if elsewhere or not one.model else "nothing")


def word_of(finding: str) -> str:
    """Return what a finding says is missing, in a word or two; empty where there is none for it."""
    return _WORDS.get(finding) or _WORDS_OF.get(finding.split(".")[0], "")


def _table(found: list[PresetVerdict], *, elsewhere: bool) -> list[str]:
    if not found:
        return ["No preset would work."]
    rows = [
        (
            one.preset,
            VERDICTS[one.verdict],
            _memory(one),
            "" if not one.largest_context else f"{one.largest_context:,}",
            _rate(one.decode),
            _rate(one.decode_undrafted),
            "" if one.measured is None else _rate(one.measured.value),
            _missing(one, elsewhere=elsewhere),
            _why(one),
        )
        for one in found
    ]
    headings = (
        "preset",
        "verdict",
        "memory of each GPU, all streams" if elsewhere else "memory, all streams",
        "longest context",
        "decode, ≤",
        "undrafted, ≤",
        "measured",
        "missing",
        "why",
    )
    return table(headings, rows)


def _memory(one: PresetVerdict) -> str:
    """Format the needed and the available memory; for a start that fits only tightly, all of it."""
    if one.needed is None or one.room is None:
        return ""
    if one.verdict is Verdict.TIGHT and one.needed > one.room:
        return f"all of {size(one.room)}"
    return f"{size(one.needed)} of {size(one.room)}"


def _why(one: PresetVerdict) -> str:
    """The reason of a verdict, what all streams would take where that is too much, and of a measured rate."""
    more = one.verdict is Verdict.TIGHT and one.needed is not None and one.needed > (one.room or 0)
    told = (one.why, f"All would take {size(one.needed)}." if more else "", one.measured_why)
    return " ".join(filter(None, told))


def _rate(tokens: float | None) -> str:
    return "" if tokens is None else f"{tokens:,.0f} tok/s" if tokens >= 100 else f"{tokens:,.1f} tok/s"
