"""`sndr bench quality`: what a quantised KV cache does to a model."""

import statistics
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import overrides_of, resolved
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.protocol.bench.quality import KvQuality, MeasureQuality, QualityPage, QualityReport
from engine_host.protocol.language import formed
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.operations import table as ops

_USUAL = MeasureQuality()


@click.command("quality")
@click.argument("model", required=False)
@click.option(
    "--kv",
    multiple=True,
    metavar="TYPE",
    help="A type of the KV cache: q8_0, q4_0 (llama.cpp); fp8, turboquant_k8v4, turboquant_k8v4+all-layers, "
    "turboquant_4bit_nc (vLLM). Several times; the usual ones without it.",
)
@click.option(
    "--engine",
    type=click.Choice([kind.value for kind in EngineKind]),
    default="auto",
    show_default=True,
    help="What runs the model; auto: llama.cpp for GGUF and the bundled one, vLLM for safetensors.",
)
@click.option("--installation", metavar="ID", help="Which vLLM, e.g. 0.32.0-cuda, or the folder of your own.")
@click.option(
    "--text",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text in UTF-8 (default: the bundled one).",
)
@click.option("--positions", type=int, default=_USUAL.positions, show_default=True, help="Predicted tokens.")
@click.option("--context", type=int, default=_USUAL.context, show_default=True, help="Tokens of a window.")
@click.option(
    "--top", type=int, default=_USUAL.top, show_default=True, help="Tokens compared one by one at a position."
)
@click.option("--chunk", type=int, default=_USUAL.chunk, show_default=True, help="vLLM: tokens of a chunk.")
@click.option("--answers", type=int, default=_USUAL.answers, show_default=True, help="Greedy answers.")
@click.option(
    "--answer-tokens", type=int, default=_USUAL.answer_tokens, show_default=True, help="Their length."
)
@click.option(
    "--gpu", "gpus", multiple=True, metavar="GPU", help="Which GPUs, by number or UUID; else the freest."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of every start.")
@click.option("--list", "listed", is_flag=True, help="Show what was measured here.")
@command("sndr bench quality qwen3-8b --kv fp8 --kv turboquant_k8v4", "sndr bench quality --list")
def quality(
    out: Output,
    model: str | None,
    kv: tuple[str, ...],
    engine: str,
    installation: str | None,
    text: Path | None,
    positions: int,
    context: int,
    top: int,
    chunk: int,
    answers: int,
    answer_tokens: int,
    gpus: tuple[str, ...],
    settings: tuple[str, ...],
    listed: bool,
) -> Exit | None:
    """Measure what types of the KV cache do to MODEL, beside 16 bits.

    Perplexity over a text, divergence of the next token's probabilities (a lower bound: tokens that are not
    listed count as one), facts hidden at several depths, and how far greedy answers agree. Each type is a
    start of a real engine; 5 when one of them could not be measured.
    """
    with find_or_start() as hold:
        if listed:
            page = hold.client.call(ops.QUALITIES)
            out.result(page, _list(page))
            return None
        asked = MeasureQuality(
            model=resolved(model) if model else "",
            engine=EngineKind(engine),
            installation=installation,
            kv=kv,
            text=str(text.absolute()) if text else None,
            positions=positions,
            context=context,
            top=top,
            chunk=chunk,
            answers=answers,
            answer_tokens=answer_tokens,
            overrides=overrides_of(settings),
            gpus=gpus,
        )
        job = begin(hold.client, lambda: hold.client.call(ops.MEASURE_QUALITY, asked), out)
    report = QualityReport.model_validate(job.result)
    out.result(report, _told(report))
    return Exit.ENGINE if any(row.problem for row in report.rows) else None


def _told(report: QualityReport) -> list[str]:
    asked = report.asked
    lines = [
        f"{report.model} on {report.server_version}, {report.machine}",
        f"{report.measured_positions} positions of {report.text}, windows of {asked.context} tokens, "
        f"{asked.top} tokens listed",
        "",
        *table(
            ("KV cache", "perplexity", "KL, nats", "KL, 99 %", "same best", "needles", "answers agree"),
            [_row(row, asked) for row in report.rows],
        ),
    ]
    lines += [f"{row.kv}: {row.how}" for row in report.rows if row.how]
    lines += [f"{row.kv}: {row.problem.sentence()}" for row in report.rows if row.problem]
    return [*lines, "", f"Again: {report.command}"]


def _row(row: KvQuality, asked: MeasureQuality) -> tuple[str, ...]:
    if row.perplexity is None:
        return (row.kv, *["not measured"] * 6)
    found = sum(one.found for one in row.needles)
    agreed = "reference"
    if row.agreed:
        whole = sum(length >= asked.answer_tokens for length in row.agreed)
        median = statistics.median(row.agreed)
        agreed = f"{whole} of {len(row.agreed)} whole, median {median:g} of {asked.answer_tokens}"
    return (
        row.kv,
        f"{row.perplexity:.4f}",
        "" if row.divergence is None else f"{row.divergence:.6f}",
        "" if row.divergence_99 is None else f"{row.divergence_99:.5f}",
        "" if row.same_best is None else formed(row.same_best, ".2%"),
        f"{found} of {len(row.needles)}",
        agreed,
    )


def _list(page: QualityPage) -> list[str]:
    if not page.reports:
        return [
            "No KV cache was measured on this machine yet.",
            "Measure the bundled model: sndr bench quality",
        ]
    return [line for report in page.reports for line in (*_told(report), "")]
