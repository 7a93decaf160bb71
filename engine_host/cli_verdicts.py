"""`sndr presets verdicts`: what works on a machine, what works best first, what is missing to start it."""

import click

from engine_host.cli_fit import VERDICTS
from engine_host.cli_output import Exit, Output, command, size, table
from engine_host.cli_values import counted_hardware
from engine_host.host_start import find_or_start
from engine_host.protocol.plans import Finding
from engine_host.protocol.presets import JudgePresets, PresetVerdict, PresetVerdicts


@click.command("verdicts")
@click.option(
    "--hardware",
    metavar="[N x ]ID",
    help="Other GPUs, e.g. `2x rtx-3090` (sndr presets hardware), instead of this machine.",
)
@click.option(
    "--count", type=click.IntRange(1, 8), help="How many GPUs (default: those here, or as many as it needs)."
)
@click.option("--all", "every", is_flag=True, help="Also what does not fit or cannot run.")
@command
def verdicts(out: Output, hardware: str | None, count: int | None, every: bool) -> Exit | None:
    """Say which presets would work, what works best first, and what is missing to start each."""
    hardware, count = counted_hardware(hardware, count)
    with find_or_start() as hold:
        asked = JudgePresets(hardware=hardware, count=count)
        page = hold.client.post("/v1/presets/verdicts", PresetVerdicts, asked)
    shown = [one for one in page.verdicts if every or one.verdict in {"fits", "tight"}]
    elsewhere = hardware not in {None, "here"}
    lines = [f"On {page.hardware}:", *_table(shown, elsewhere=elsewhere)]
    if any(one.verdict == "does_not_fit" for one in shown):
        lines += ["", _COUNTED]
    hidden = len(page.verdicts) - len(shown)
    if hidden:
        lines += ["", f"{hidden} more do not fit or cannot run; --all shows them with the reason."]
    first = next((one for one in shown if one.missing and not any(map(_of_the_machine, one.missing))), None)
    if first is not None and not elsewhere:
        lines += ["", f"To start {first.preset}:"]
        for finding in first.missing:
            lines.append(f"  {finding.message}")
            if finding.fix is not None and finding.fix.command:
                lines.append(f"    $ {finding.fix.command}")
    out.result(page, lines)
    return None


_COUNTED = (
    "Memory is what every stream takes at full length. What is missing with vLLM is what one stream lacks: "
    "there further streams wait for room."
)
# In words what a finding says is missing, by its id; of others the first part of the id says enough.
_WORDS = {
    "preset.gpus": "GPUs",
    "preset.vram": "GPU memory",
    "preset.sm": "a newer GPU",
    "preset.formats": "its arithmetic",
    "preset.nvlink": "NVLink",
    "engine.not_started": "a program that starts its engine",
}
_WORDS_OF = {"weights": "files", "drafter": "files of its drafter", "engine": "engine"}


def _of_the_machine(finding: Finding) -> bool:
    """Whether nothing that can be fetched or installed is missing."""
    return finding.id.startswith("preset.") or finding.id == "engine.not_started"


def _missing(one: PresetVerdict, *, elsewhere: bool) -> str:
    """What has to come first, in words; what is here says nothing of another machine."""
    words = [
        _WORDS.get(finding.id) or _WORDS_OF.get(finding.id.split(".")[0], finding.id)
        for finding in one.missing
    ]
    return ", ".join(dict.fromkeys(words)) or ("" if elsewhere or not one.model else "nothing")


def _table(found: list[PresetVerdict], *, elsewhere: bool) -> list[str]:
    if not found:
        return ["No preset would work."]
    rows = [
        (
            one.preset,
            VERDICTS[one.verdict],
            "" if one.needed is None or one.room is None else f"{size(one.needed)} of {size(one.room)}",
            "" if not one.largest_context else f"{one.largest_context:,}",
            "" if one.decode is None else f"{one.decode:,.0f} tok/s",
            _missing(one, elsewhere=elsewhere),
            one.why,
        )
        for one in found
    ]
    headings = ("preset", "verdict", "memory, all streams", "longest context", "at most", "missing", "")
    return table(headings, rows)
