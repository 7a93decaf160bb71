"""`sndr fit`: what a model needs on a machine, whether it fits, and what to change."""

import click

from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.param_types import FiniteRange, counted_hardware
from engine_host.cli.start.options import resolved
from engine_host.cli.start.reading import reading
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.tables import table
from engine_host.core.outside import files
from engine_host.protocol.language import formed
from engine_host.protocol.launch.fit import (
    KV_TOKENS,
    FitGpu,
    FitReport,
    FitRequest,
    MeasuredPage,
    ReadFromHub,
    Roofline,
    Verdict,
)
from engine_host.protocol.launch.plans import ALL_ENGINES, EngineKind
from engine_host.protocol.operations import table as ops

# No start can be given more.
_STREAMS = 256
VERDICTS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "tight",
    Verdict.UNKNOWN: "not known",
    Verdict.DOES_NOT_FIT: "does not fit",
    Verdict.CANNOT_RUN: "cannot run here",
}


_CHOSEN = {
    Verdict.FITS: "the largest that fits",
    Verdict.TIGHT: "the largest that starts",
    Verdict.DOES_NOT_FIT: "the smallest",
}


@click.command()
@click.argument("model", required=False)
@click.option("--preset", metavar="ID", help="The start of this preset; what is given here wins over it.")
@click.option(
    "--hardware", metavar="[N x ]ID", help="Other GPUs, e.g. `2x rtx-3090` (sndr presets hardware)."
)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GIB[:TAKEN[:GB/s]]",
    help="A GPU by its figures: memory, what others hold, bandwidth.",
)
@click.option(
    "--taken",
    "taken_gib",
    type=FiniteRange(0, 1024),
    metavar="GIB",
    help="Of each GPU of --hardware, what others hold; a desktop about 1.",
)
@click.option("--cpu", is_flag=True, help="The processor alone.")
@click.option("--engine", type=click.Choice([kind.value for kind in EngineKind]), default="auto")
@click.option("--context", type=click.IntRange(128), help="Tokens of context for one stream.")
@click.option("--streams", type=click.IntRange(1, 4096), help="Requests in parallel (default: 1).")
@click.option("--kv", help="KV type: auto, fp8, turboquant_k8v4 …; llama.cpp: f16, q8_0, q4_0 …")
@click.option(
    "--flash-attention", type=click.Choice(["auto", "on", "off"]), help="llama.cpp (default: auto)."
)
@click.option("--tp", type=click.IntRange(1, 64), help="GPUs that share each layer (default: all).")
@click.option("--gpu-memory", type=FiniteRange(0.05, 1), help="vLLM's share of it (default: 0.9).")
@click.option("--kv-cache-gib", type=FiniteRange(0, min_open=True), help="vLLM: size of its KV cache.")
@click.option("--batched-tokens", type=click.IntRange(1), help="vLLM: tokens of a prompt read in one step.")
@click.option(
    "--gpu-layers", type=click.IntRange(-1, 100_000), help="llama.cpp: layers on the GPU (default: all)."
)
@click.option(
    "--cpu-experts",
    type=click.IntRange(0, 100_000),
    help="llama.cpp: layers whose experts stay in main memory.",
)
@click.option("--speculation/--no-speculation", default=None, help="The model's own drafting layers run.")
@click.option("--draft-tokens", type=click.IntRange(1, 64), help="Drafted a step (default: 3).")
@click.option("--acceptance-length", type=FiniteRange(1), help="Tokens a drafted step yields.")
@click.option("--bits", type=FiniteRange(1, 32), help="Bits of a weight, for a config without files.")
@click.option("--eager/--no-eager", default=None, help="vLLM: without CUDA graphs.")
@click.option(
    "--online", is_flag=True, help="First read the config.json of organisation/model from Hugging Face."
)
@click.option(
    "--use-gpu", "use_gpus", multiple=True, metavar="GPU", help="This GPU of this machine; repeatable."
)
@click.option(
    "--instead-of", multiple=True, metavar="ENGINE", help="Count this running engine's memory as free."
)
@click.option("--replace", is_flag=True, help="Count the memory of every running engine as free.")
@click.option("--starts", is_flag=True, help="Show how well starts on this machine were predicted, instead.")
@command(
    "sndr fit qwen3-8b",
    "sndr fit qwen3-8b --hardware '2x rtx-3090' --context 32768",
    "sndr fit --preset qwen3-8b-k8v4-24",
)
def fit(
    out: Output,
    /,
    model: str | None,
    preset: str | None,
    tp: int | None,
    cpu: bool,
    gpus: tuple[str, ...],
    starts: bool,
    online: bool,
    use_gpus: tuple[str, ...],
    instead_of: tuple[str, ...],
    replace: bool,
    **given: object,
) -> Exit | None:
    """Say what MODEL, or the start of a preset, needs in memory, and how far it can go.

    MODEL is a name of this machine's list, a path of a GGUF file, folder or config.json, or a model of the
    catalogue (`qwen3.6-27b` or `qwen3.6-27b/int4-autoround`), or organisation/model on Hugging Face, of
    which --online reads the config.json once. No weights are loaded.

    On this machine it is counted beside the engines that run; a start takes the place of one of its own name.

    The exit code is 5 when it does not fit or cannot run, 0 when it fits or is tight.
    """
    machines = {"--hardware": given["hardware"], "--gpu": gpus, "--cpu": cpu}
    if len(conflicting := [name for name, value in machines.items() if value]) > 1:
        raise click.UsageError(f"{' and '.join(conflicting)} name different machines: give one of them.")
    if given["taken_gib"] is not None and not given["hardware"]:
        raise click.UsageError(
            "--taken goes with --hardware: what is held here is seen, and --gpu has it among its figures."
        )
    counted_hardware(str(given["hardware"]) if given["hardware"] else None, None)
    if starts and (preset is not None or online):
        raise click.UsageError("--starts takes a MODEL at most: --preset and --online do not go with it.")
    if model is None and preset is None and not starts:
        raise click.UsageError("Give a MODEL, or a preset with --preset ID.")
    # Of a preset only what was given here is said; without one, the rest are the usual values.
    named = {"model": _name(model), "preset": preset, "tensor_parallel": tp, "cpu": cpu or None, **given}
    named["gpus"] = tuple(map(_gpu, gpus)) or None
    named["use_gpus"] = use_gpus or None
    named["instead_of"] = (ALL_ENGINES,) if replace else instead_of or None
    request = FitRequest.model_validate(
        {"grid": out.as_json} | {name: value for name, value in named.items() if value is not None}
    )
    with reading(memory=True) as host:
        if starts:
            page = host.call(ops.FIT_STARTS)
            if model is not None and all(one.model != model for one in page.starts):
                # A path or an id: the host knows what its starts are called.
                model = host.call(ops.FIT, request).model
            page = _of_model(page, model)
            out.result(page, _starts(page))
            return None
        if online:
            repository, _, revision = request.model.partition("@")
            hub_request = ReadFromHub(repository=repository, revision=revision or "main")
            found = host.call(ops.READ_FROM_HUB, hub_request)
            request = request.model_copy(update={"model": found.model})
        report = host.call(ops.FIT, request)
    usual = preset is None and given["streams"] is None and report.verdict is not Verdict.CANNOT_RUN
    out.result(report, [*_lines(report), *(["", _ONE_STREAM] if usual else [])])
    return Exit.ENGINE if report.verdict in {Verdict.DOES_NOT_FIT, Verdict.CANNOT_RUN} else None


_ONE_STREAM = (
    "Counted for one stream. A start without --streams serves as many as the setting engine.streams says "
    "(8 by default): --streams counts them here."
)


def _gpu(given: str) -> FitGpu:
    """A GPU from `24`, `24:1.5` or `24:1.5:936`: GiB, GiB and GB/s."""
    try:
        figures = [float(figure) for figure in given.split(":")]
        total, used, bandwidth = [*figures, 0.0, 0.0][: max(3, len(figures))]
        if used >= total > 0:
            raise click.UsageError(f"--gpu {given}: others cannot hold {used:g} of {total:g} GiB.")
        return FitGpu(
            total=round(total * 2**30),
            taken=round(used * 2**30),
            bandwidth=bandwidth * 1e9 or None,
        )
    except (ValueError, OverflowError) as error:
        raise click.UsageError(
            f"--gpu takes GIB[:TAKEN[:GB/s]], such as 24:1.5:936; not {given!r}."
        ) from error


def _name(model: str | None) -> str | None:
    """The model as the host finds it; None where the preset says which."""
    if model is None:
        return None
    path = files.expanded(model)
    if chosen_host():
        return resolved(model)
    return str(path.absolute()) if path.suffix in {".json", ".gguf"} and path.is_file() else resolved(model)


def _lines(report: FitReport) -> list[str]:
    of = f"{report.preset}: " if report.preset else ""
    head = f"{of}{report.model} with {report.engine.value}, KV {report.kv}: {VERDICTS[report.verdict]}"
    lines = [f"{head}{_counted(report)}. {report.why}".rstrip()]
    if report.variants:
        which = _CHOSEN.get(report.verdict, "one, and of none it is known whether it fits,")
        lines += [
            f"It is {which} of the catalogue's {len(report.variants) + 1} variants. "
            f"`sndr fit NAME` counts another: {', '.join(report.variants)}."
        ]
    lines += [f"Beside {', '.join(one.name for one in report.beside)}."] if report.beside else []
    ended = ", ".join(one.name for one in report.instead_of)
    lines += [f"In place of {ended}, whose memory counts as free."] if ended else []
    shown = f"{report.streams} × {report.context:,} tokens"
    for device in report.devices[:1]:
        count = len(report.devices)
        each = f" (each of {count})" if count > 1 else ""
        lines += ["", f"{device.name}{each}, {shown}:"]
        rows = [
            (
                part.name,
                size(part.size),
                f"{size(part.low)} – {size(part.high)}",
                part.source.value,
                part.note,
            )
            for part in device.parts
        ]
        rows.append(("together", size(device.needed), "", "", f"of {size(device.room)} to be used"))
        if device.taken:
            rows.append(("taken by others", size(device.taken), "", "", ""))
        lines += table(("part", "bytes", "between", "from", "note"), rows)
    lines += [report.reserve] if report.reserve else []
    if report.largest_context:
        lines += [
            "",
            f"Longest context of {_count(report.streams, 'stream')}: {report.largest_context:,} tokens; "
            f"most streams of {report.context:,} tokens: {_most(report)}.",
        ]
        lines += _kv(report)
    lines += _changes(report)
    for advice in report.advice:
        lines += ["", f"{advice.severity.value} {advice.id}: {advice.message}", f"  {advice.fix}"]
        lines.append(f"  Shown by: {advice.evidence}")
    if report.roofline is not None:
        lines += ["", *_ceiling(report.roofline)]
    lines += [
        f"Learnt from {_count(one.n, 'start')} like it here: {one.part} ×{one.factor:.2f}"
        for one in report.corrections
    ]
    lines += [f"Not known: {text}." for text in report.unknown]
    return lines


def _changes(report: FitReport) -> list[str]:
    """List the changes that make it fit, with the options that ask for it and the settings of a start."""
    if not report.changes:
        return []
    lines = ["", "To make it fit, cheapest first (✓ enough alone, · helps, but not enough alone):"]
    for change in report.changes:
        saved = f" ({size(change.saves)})" if change.saves else ""
        # Another model is no option but the argument.
        how = f"sndr fit {other}" if (other := change.asks.get("model")) else change.option
        lines.append(f"  {'✓' if change.fits else '·'} {change.text}{saved} {how}".rstrip())
        if change.id in {"gpu_layers", "cpu_experts"}:
            settings = " ".join(f"--set {name}={value}" for name, value in change.asks.items())
            lines.append(f"    A start takes it as {settings}.")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _most(report: FitReport) -> str:
    """The most streams, of which a start can be given 256; none where no stream should be as long."""
    if report.most_streams >= _STREAMS:
        return f"{_STREAMS} or more"
    return str(report.most_streams or "none")


def _counted(report: FitReport) -> str:
    """Return the streams of the verdict and how many there is room for: a start may serve more."""
    if report.verdict not in {Verdict.FITS, Verdict.TIGHT}:
        return ""
    most = _most(report) if report.most_streams else "no"
    room = f"room for {most} {'stream' if report.most_streams == 1 else 'streams'}"
    return f" ({_count(report.streams, 'stream')}; {room} of {report.context:,} tokens)"


def _kv(report: FitReport) -> list[str]:
    rows = [
        (
            choice.kv,
            f"{choice.bytes_per_token:,.0f} B",
            f"{choice.largest_context:,}",
            VERDICTS[choice.verdict],
        )
        for choice in report.kv_choices
    ]
    return ["", *table(("KV type", "a token", "longest context", "verdict"), rows)]


def _ceiling(found: Roofline) -> list[str]:
    if found.decode is None:
        return [f"Most tokens a second: not known ({found.why or 'no bandwidth'})."]
    prefill = "" if found.prefill is None else f"; prefill {found.prefill:,.0f} tok/s"
    drafted = f", {found.tokens_per_step:g} tokens a step" if found.tokens_per_step > 1 else ""
    begun = _speeds(found.decode, found.decode_all_streams, found.streams)
    lines = [f"Decode at most, short context{drafted}: {begun}{prefill}."]
    if found.decode_at_depth is not None:
        deep = _speeds(found.decode_at_depth, found.all_streams_at_depth, found.streams)
        lines.append(f"Decode at most, at {found.depth or 0:,} tokens of context: {deep}.")
    return lines


def _speeds(one: float, every: float | None, streams: int) -> str:
    together = "" if every is None or streams == 1 else f", {streams:,} streams together {every:,.0f} tok/s"
    return f"one stream {one:,.0f} tok/s{together}"


def _of_model(page: MeasuredPage, model: str | None) -> MeasuredPage:
    """The starts of one model; all without one."""
    if model is None:
        return page
    found = tuple(one for one in page.starts if one.model == model)
    if not found:
        known = ", ".join(sorted({one.model for one in page.starts})) or "none yet"
        raise click.UsageError(f"No start of {model} was compared here. Compared were: {known}.")
    return MeasuredPage(starts=found)


def _starts(page: MeasuredPage) -> list[str]:
    rows = [
        (
            one.model,
            one.engine,
            one.start,
            one.part,
            *(
                (f"{number:,}" if one.part == KV_TOKENS else size(number))
                for number in (one.predicted, one.measured)
            ),
            formed(one.error, "+.1%"),
        )
        for one in page.starts
    ]
    if not rows:
        return ["No start was compared yet."]
    return table(("model", "engine", "start", "part", "predicted", "measured", "error"), rows)
