"""`sndr bench run`, `list`, `report`, `compare`, `remove`: measure engines, read what was kept."""

import os
import platform
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar

import click
from pydantic import ValidationError

from engine_host import __version__
from engine_host.cli.bench.lab_text import comparison_lines, list_lines, report_lines
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected, may_do_without
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.job_progress import begin
from engine_host.client.bench_reports.for_others import comparison_for_others, run_for_others
from engine_host.client.bench_reports.html import comparison_html, run_html
from engine_host.client.bench_reports.markdown import comparison_markdown, run_markdown
from engine_host.client.sync import ControlClient
from engine_host.connect.facts import key_from
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.core.paths import Folders
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.bench.comparison import CompareRuns, LabComparison
from engine_host.protocol.bench.lab import (
    LabAsk,
    LabEngine,
    LabMachine,
    LabPage,
    LabRun,
    RunBench,
    WorkloadName,
)
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops

T = TypeVar("T")
_CUT_SHORT = {Reason.CANCELLED, Reason.ENGINE_NOT_READY}
_PATIENCE = 10.0
FILE = ".json"
"""The ending by which a file is told from the name of a run."""


@click.command("run")
@click.argument("workload", metavar="WORKLOAD", type=click.Choice([name.value for name in WorkloadName]))
@click.option("--engine", metavar="ENGINE", help="Of several that run: its name or id.")
@click.option("--url", metavar="URL", help="Any server that speaks OpenAI's interface, with --model.")
@click.option("--model", metavar="ID", help="The model's id at --url.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Measured rounds of each part, not its own.")
@click.option("--seed", type=click.IntRange(0, (1 << 53) - 1), help="Repeats the prompts of another run.")
@click.option(
    "--part", "parts", multiple=True, metavar="PART", help="Of several parts only this; repeatable."
)
@click.option("--resume", metavar="RUN", help="With --url: go on with a run that was cut short.")
@command(
    "sndr bench run quick",
    "sndr bench run canonical --engine qwen3-8b",
    "sndr bench run serving --url http://127.0.0.1:8000/v1 --model qwen3-8b",
)
def lab_run(
    out: Output,
    workload: str,
    engine: str | None,
    url: str | None,
    model: str | None,
    rounds: int | None,
    seed: int | None,
    parts: tuple[str, ...],
    resume: str | None,
) -> Exit | None:
    """Measure the speed of an engine, with a check of what it says.

    \b
    quick        a short story of 128 tokens, 1 warm-up and 5 measured
    canonical    an essay of 1000 tokens, code of 800; 3 warm-ups, 5 measured each
    prefill      a prompt of about 6,000 tokens, 1 warm-up and 5 measured
    prefill-10k  a prompt of exactly 10,000 tokens, 1 warm-up and 5 measured
    prefill-90k  a prompt of exactly 90,000 tokens, 1 warm-up and 3 measured
    concurrency  the essay at 1, 2, 4, 8 and 16 at once: where more stop to pay
    serving      by arrivals: baseline, continuous batching, burst, mixed
                 prompts, shared prefix
    agentic      15 turns of calls and results up to 53,000 tokens: the curve
                 of the time to the first token
    context      texts up to 0.92 of the context: is all of it taken, is the
                 fact in it found
    soak         20 sessions of five turns: are later ones worse?
    soak-continuous  the same, 6 sessions up to 25,000 tokens

    Every prompt begins with words of its own, so that no prefix cache flatters. A figure of incoherent
    answers is struck (exit code 1), and what cannot be told is n/a with its reason. An engine is measured by
    a job of its host, which goes on where this command is lost (`sndr jobs`). Ctrl+C keeps what was
    measured, marked as partial; --resume asks what is missing of it. A key for --url, where one is needed,
    is read from SNDR_API_KEY.
    """
    # Read by the measurement itself; one that it would refuse starts nothing.
    key_from(os.environ)
    if (url is None) != (model is None):
        raise click.UsageError("--url and --model go together.")
    if url is not None and engine is not None:
        raise click.UsageError("Give --engine or --url, not both.")
    if resume is not None and (url is None or seed is not None):
        raise click.UsageError("--resume goes with --url, and has the seed of its run.")
    asked = RunBench(
        workload=WorkloadName(workload), engine=engine, rounds=rounds, seed=seed, only=tuple(parts)
    )
    with signals():
        if url is not None and model is not None:
            at = at_address(out, asked, url, model).model_copy(update={"resume": resume})
            found, interrupted = carried_out(at)
            run = LabRun.model_validate(found["run"])
            if interrupted and not run.samples:
                out.result(run, "It was cut short before anything was measured; nothing is kept.")
                return Exit.INTERRUPTED
            if not run.complete and run.samples:
                words = ["sndr", "bench", "run", workload, "--url", url, "--model", model]
                words += [word for name in parts for word in ("--part", name)]
                words += [] if rounds is None else ["--rounds", str(rounds)]
                out.note(f"what is missing of it: {shlex.join([*words, '--resume', run.id])}")
        else:
            with connected() as client:
                names, interrupted = measured_by_host(out, client, asked)
                run = client.call(ops.BENCH_RUN, id=names[0])
    out.result(run, report_lines(run))
    return Exit.INTERRUPTED if interrupted else exit_of([run])


@click.command("list")
@command("sndr bench list")
def lab_list(out: Output) -> Exit | None:
    """Show the runs that were measured on this machine, newest first."""
    page = kept(
        lambda client: client.call(ops.BENCH_RUNS),
        lambda folder: LabPage.model_validate(read(["list", folder])["page"]),
    )
    out.result(page, list_lines(page))
    return None


@click.command("report")
@click.argument("run", default="latest")
@click.option("--md", is_flag=True, help="As Markdown.")
@click.option("--html", is_flag=True, help="As one HTML file that loads nothing.")
@command("sndr bench report", "sndr bench report latest --html > report.html", "sndr bench report run.json")
def lab_report(out: Output, run: str, md: bool, html: bool) -> Exit | None:
    """Show RUN, or the latest: its figures, conditions and gates; with --json also every sample.

    RUN is a name of `sndr bench list`, or a beginning or an end of one, or a file of somebody else
    (`sndr bench report RUN --json > run.json`).
    """
    refuse_two_forms(out, md, html)
    if run.endswith(FILE):
        found = LabRun.model_validate(read(["read", "--", "", run])["run"])
    else:
        found = kept(
            lambda client: client.call(ops.BENCH_RUN, id=run),
            lambda folder: LabRun.model_validate(read(["show", "--", folder, run])["run"]),
        )
    told = run_html if html else run_markdown if md else report_lines
    out.result(run_for_others(found) if out.as_json else found, told(found))
    return None


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--repeat",
    type=click.IntRange(6, 1000),
    help="Measure two engines that run, A B B A …, in so many rounds: A and B are their names or ids.",
)
@click.option(
    "--workload",
    metavar="WORKLOAD",
    type=click.Choice([name.value for name in WorkloadName]),
    help="The one of --repeat, of `sndr bench run --help`; `quick` if not given.",
)
@click.option("--url", metavar="URL", help="With --repeat: A and B are ids of models there, such as routes.")
@click.option("--seed", type=click.IntRange(0, (1 << 53) - 1), help="With --repeat: repeats the prompts.")
@click.option("--md", is_flag=True, help="As Markdown.")
@click.option("--html", is_flag=True, help="As one HTML file that loads nothing.")
@command("sndr bench compare 20261126 latest", "sndr bench compare stable new --repeat 10")
def lab_compare(
    out: Output,
    a: str,
    b: str,
    repeat: int | None,
    workload: str | None,
    url: str | None,
    seed: int | None,
    md: bool,
    html: bool,
) -> Exit | None:
    """Say by how much run B is faster or slower than run A, what differs, and what speaks against it.

    A and B are names of `sndr bench list`, or a beginning or an end of one, or `latest`, or files of others
    (`sndr bench report RUN --json > run.json`). Runs of other
    workloads are refused; another model, machine or driver is said. With --repeat both are measured first,
    in turns, so that a machine that drifts does so for both: the surest way to tell two engines apart.
    """
    refuse_two_forms(out, md, html)
    if repeat is None:
        if (workload, url, seed) != (None, None, None):
            raise click.UsageError("--workload, --url and --seed go with --repeat.")
        found, interrupted = compare_kept(a, b), False
    else:
        key_from(os.environ)
        name = WorkloadName(workload or WorkloadName.QUICK)
        asked = RunBench(workload=name, engine=a, against=b, rounds=repeat, seed=seed)
        found, interrupted = _in_turns(out, asked, a, b, url)
    told = comparison_html if html else comparison_markdown if md else comparison_lines
    out.result(comparison_for_others(found) if out.as_json else found, told(found))
    return Exit.INTERRUPTED if interrupted else None if repeat is None else exit_of([found.a, found.b])


@click.command("remove")
@click.argument("run")
@command("sndr bench remove latest")
def lab_remove(out: Output, run: str) -> Exit | None:
    """Remove RUN, which is a name of `sndr bench list`, or a beginning or an end of one."""
    page = kept(
        lambda client: client.call(ops.REMOVE_BENCH_RUN, id=run),
        lambda folder: LabPage.model_validate(read(["remove", "--", folder, run])["page"]),
    )
    out.result(page, list_lines(page))
    return None


def compare_kept(a: str, b: str) -> LabComparison:
    """Compare two runs that are kept, or lie in files of this machine. Raises HostError."""
    in_files = [name for name in (a, b) if name.endswith(FILE)]

    def of_folder(folder: str) -> LabComparison:
        return LabComparison.model_validate(read(["compare", "--", folder, a, b])["comparison"])

    if not in_files:
        return kept(lambda client: client.call(ops.COMPARE_RUNS, CompareRuns(a=a, b=b)), of_folder)
    if host := chosen_host():
        raise click.UsageError(f"A file is compared on this machine, without --host {host}.")
    return of_folder(str(Folders.resolve().data))


def refuse_two_forms(out: Output, md: bool, html: bool) -> None:
    """Refuse more than one form of a report. Raises click.UsageError."""
    if md + html + out.as_json > 1:
        raise click.UsageError("Give one of --md, --html and --json.")


def _in_turns(out: Output, asked: RunBench, a: str, b: str, url: str | None) -> tuple[LabComparison, bool]:
    with signals():
        if url is not None:
            found, interrupted = carried_out(at_address(out, asked, url, a, b))
            return LabComparison.model_validate(found["comparison"]), interrupted
        with connected() as client:
            names, interrupted = measured_by_host(out, client, asked)
            if len(names) < 2:
                raise HostError(
                    Reason.CANCELLED,
                    tr("It was cut short before both were asked; {names} is kept.", names=names[0]),
                    fix=Fix(text="See it.", command=f"sndr bench report {names[0]}"),
                )
            return client.call(ops.COMPARE_RUNS, CompareRuns(a=names[0], b=names[1])), interrupted


def kept(of_host: Callable[[ControlClient], T], of_folder: Callable[[str], T]) -> T:
    """Ask the host that this command is about; where none runs here, read the disk. Raises HostError."""
    try:
        client = connected()
    except HostError as error:
        if not may_do_without(error):
            raise
        return of_folder(str(Folders.resolve().data))
    with client:
        return of_host(client)


def measured_by_host(out: Output, client: ControlClient, asked: RunBench) -> tuple[list[str], bool]:
    """Have the host measure; the runs that were kept, and True where it was cancelled. Raises HostError."""
    begun = f"measuring in the background (sndr jobs): {asked.command}"
    try:
        ended = begin(client, lambda: client.call(ops.RUN_BENCH, asked), out, begun)
        return [str(one) for one in ended.result.get("runs", ())], False
    except HostError as error:
        kept = error.problem.evidence.get("runs")
        if error.reason not in _CUT_SHORT or not isinstance(kept, list) or not kept:
            raise
        # An engine that died is a failure, and no Ctrl+C.
        return [str(one) for one in kept], error.reason is Reason.CANCELLED


def at_address(out: Output, asked: RunBench, url: str, model: str, other: str | None = None) -> LabAsk:
    if host := chosen_host():
        raise click.UsageError(f"--url is measured from this machine, without --host {host}.")
    return LabAsk(
        workload=asked.workload,
        folder=str(Folders.resolve().data),
        seed=asked.seed,
        engine=LabEngine(address=url, model=model),
        against=None if other is None else LabEngine(address=url, model=other),
        rounds=asked.rounds,
        streams=asked.streams,
        only=asked.only,
        machine=LabMachine(
            program=__version__,
            python=platform.python_version(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
        ),
        quiet=out.as_json,
    )


def exit_of(runs: Sequence[LabRun]) -> Exit | None:
    """Return the exit code of runs: figures that nobody may use are no success."""
    return Exit.FAILED if any(run.struck or not run.complete for run in runs) else None


def carried_out(asked: LabAsk) -> tuple[dict[str, Any], bool]:
    """Measure in a process of its own; what it said, and True where Ctrl+C cut it short. Raises HostError."""
    # Of a session of its own: Ctrl+C is for this program, which then closes the other's input.
    process = subprocess.Popen(
        [*command_of(OwnProgram.BENCH_LAB), "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said = b""
    interrupted = False
    try:
        _write(process.stdin, asked.model_dump_json().encode() + b"\n")
        while True:
            try:
                part = process.stdout.read(1 << 16)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                process.stdin.close()
                continue
            if not part:
                break
            said += part
    finally:
        process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
    return _found(said, process.returncode), interrupted


def _write(stdin: IO[bytes], line: bytes) -> None:
    """Give the process its first line; one that has ended says by its exit why."""
    try:
        while line:
            line = line[stdin.write(line) :]
    except BrokenPipeError:
        pass


def read(words: Sequence[str]) -> dict[str, Any]:
    """Have what is kept read by a process that knows how; its one line. Raises HostError."""
    done = subprocess.run(
        [*command_of(OwnProgram.BENCH_LAB), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
    )
    return _found(done.stdout, done.returncode)


def _found(said: bytes, code: int) -> dict[str, Any]:
    """Return the one line of the measurement. Raises HostError: its own, or one that says how it ended."""
    try:
        found = json_text.parse_last_line(said)
        problem = Problem.model_validate(found["error"]) if "error" in found else None
    except (ValueError, ValidationError) as error:
        raise HostError(
            Reason.INTERNAL,
            "The measurement ended without a result.",
            cause=tr("Its process ended with {code}; what it said stands above.", code=code),
            fix=Fix(text="Does the engine still run?", command="sndr status"),
        ) from error
    if problem is not None:
        raise HostError.from_problem(problem)
    return found
