"""`sndr bench run`, `list`, `report`, `compare`: measure an engine or any server, and read what was kept."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Any

import click
from pydantic import ValidationError

from engine_host import __version__
from engine_host.cli.bench.lab_text import comparison_lines, list_lines, report_lines
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected
from engine_host.cli.start.running import GONE, only_one
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.client.bench_reports.markdown import comparison_markdown, run_markdown
from engine_host.connect.facts import key_from
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.core.paths import Folders
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabAsk, LabEngine, LabMachine, LabPage, LabRun, WorkloadName
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.host import HostInfo
from engine_host.protocol.operations import table as ops

_PROGRAM = "engine_host.bench.lab"
_PATIENCE = 10.0


@click.command("run")
@click.argument("workload", type=click.Choice([name.value for name in WorkloadName]))
@click.option("--engine", metavar="ENGINE", help="Of several that run: its name or id.")
@click.option("--url", metavar="URL", help="Any server that speaks OpenAI's interface, with --model.")
@click.option("--model", metavar="ID", help="The model's id at --url.")
@click.option("--seed", type=click.IntRange(0, (1 << 53) - 1), help="Repeats the prompts of another run.")
@command
def lab_run(
    out: Output, workload: str, engine: str | None, url: str | None, model: str | None, seed: int | None
) -> Exit | None:
    """Measure the speed of an engine, with a check of what it says.

    \b
    quick        a short story of 128 tokens, 1 warm-up and 5 measured
    canonical    an essay of 1000 tokens and code of 800, 3 warm-ups and 5 measured each
    prefill      a prompt of about 6,000 tokens, 1 warm-up and 5 measured
    concurrency  the essay at 1, 2, 4, 8 and 16 at once, and where more stop to pay

    Every prompt begins with words of its own, so that no prefix cache flatters. A figure of incoherent
    answers is struck (exit code 1), and what cannot be told is n/a with its reason. Ctrl+C keeps what was
    measured, marked as partial. A key, where one is needed, is read from SNDR_API_KEY.
    """
    # Read by the measurement itself; one that it would refuse starts nothing.
    key_from(os.environ)
    if host := chosen_host():
        raise click.UsageError(
            f"This measures from this machine, without --host {host}; --url names a server."
        )
    if (url is None) != (model is None):
        raise click.UsageError("--url and --model go together.")
    if url is not None and engine is not None:
        raise click.UsageError("Give --engine or --url, not both.")
    name = WorkloadName(workload)
    with signals():
        if url is not None and model is not None:
            asked = LabAsk(
                workload=name,
                folder=str(Folders.resolve().data),
                seed=seed,
                engine=LabEngine(address=url, model=model),
                machine=_machine(None),
                quiet=out.as_json,
            )
        else:
            asked = _of_engine(out, name, engine, seed)
        run, interrupted = _carried_out(asked)
    out.result(run, report_lines(run))
    if interrupted:
        return Exit.INTERRUPTED
    return Exit.FAILED if run.struck or not run.complete else None


@click.command("list")
@command
def lab_list(out: Output) -> Exit | None:
    """Show the runs that were measured on this machine, newest first."""
    page = LabPage.model_validate(_read(["list", str(Folders.resolve().data)])["page"])
    out.result(page, list_lines(page))
    return None


@click.command("report")
@click.argument("run", default="latest")
@click.option("--md", is_flag=True, help="As Markdown.")
@command
def lab_report(out: Output, run: str, md: bool) -> Exit | None:
    """Show RUN, or the latest: its figures, conditions and gates; with --json also every sample.

    RUN is a name of `sndr bench list`, or a beginning or an end of one.
    """
    if md and out.as_json:
        raise click.UsageError("Give --md or --json, not both.")
    found = LabRun.model_validate(_read(["show", "--", str(Folders.resolve().data), run])["run"])
    out.result(found, run_markdown(found) if md else report_lines(found))
    return None


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--md", is_flag=True, help="As Markdown.")
@command
def lab_compare(out: Output, a: str, b: str, md: bool) -> Exit | None:
    """Say by how much run B is faster or slower than run A, what differs, and what speaks against it.

    A and B are names of `sndr bench list`, or a beginning or an end of one, or `latest`. Runs of other
    workloads are refused; another model, machine or driver is said.
    """
    if md and out.as_json:
        raise click.UsageError("Give --md or --json, not both.")
    words = ["compare", "--", str(Folders.resolve().data), a, b]
    found = LabComparison.model_validate(_read(words)["comparison"])
    out.result(found, comparison_markdown(found) if md else comparison_lines(found))
    return None


def _of_engine(out: Output, workload: WorkloadName, wanted: str | None, seed: int | None) -> LabAsk:
    with connected() as client:
        alive = [one for one in client.call(ops.ENGINES).engines if one.state not in GONE]
        if wanted is not None:
            alive = [one for one in alive if wanted in (one.id, one.name)]
        engine = only_one(alive, "Name one with --engine.")
        if engine is None:
            raise HostError(
                Reason.NO_ENGINE_RUNS,
                f"No engine {wanted} runs." if wanted else "No engine runs, so there is nothing to measure.",
                fix=Fix(text="Start one first.", command="sndr run --demo --detach"),
            )
        host = client.call(ops.HOST)
        socket = client.folders.run / f"{engine.plan.id}.sock"
        data = client.folders.data
    out.note(f"measuring {engine.name} ({engine.engine} {engine.server_version}): {workload}")
    return LabAsk(
        workload=workload,
        folder=str(data),
        seed=seed,
        engine=_facts(engine, str(socket)),
        machine=_machine(host),
        socket=str(socket),
        quiet=out.as_json,
    )


def _facts(engine: Engine, address: str) -> LabEngine:
    plan = engine.plan
    return LabEngine(
        address=address,
        model=engine.name,
        id=engine.id,
        engine=engine.engine,
        version=engine.server_version,
        model_path=plan.model_path,
        command=plan.command,
        argv=plan.argv,
        settings={setting.name: str(setting.value) for setting in plan.settings},
        patches=() if plan.patches is None else plan.patches.chosen,
    )


def _machine(host: HostInfo | None) -> LabMachine:
    """Return what asks; of the GPUs only where they answer too."""
    return LabMachine(
        program=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor="" if host is None else host.cpu_name,
        gpus=() if host is None else tuple(gpu.name for gpu in host.gpus),
        driver="" if host is None else host.driver or "",
    )


def _carried_out(asked: LabAsk) -> tuple[LabRun, bool]:
    """Measure in a process of its own; the run, and True where Ctrl+C cut it short. Raises HostError."""
    # Of a session of its own: Ctrl+C is for this program, which then closes the other's input.
    process = subprocess.Popen(
        [sys.executable, "-m", _PROGRAM, "run"],
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
    return LabRun.model_validate(_found(said, process.returncode)["run"]), interrupted


def _write(stdin: IO[bytes], line: bytes) -> None:
    """Give the process its first line; one that has ended says by its exit why."""
    try:
        while line:
            line = line[stdin.write(line) :]
    except BrokenPipeError:
        pass


def _read(words: Sequence[str]) -> dict[str, Any]:
    if host := chosen_host():
        raise click.UsageError(f"Runs are kept on this machine: without --host {host}.")
    done = subprocess.run(
        [sys.executable, "-m", _PROGRAM, *words],
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
            cause=f"Its process ended with {code}; what it said stands above.",
            fix=Fix(text="Does the engine still run?", command="sndr status"),
        ) from error
    if problem is not None:
        raise HostError.from_problem(problem)
    return found
