"""`sndr bench soak`: does an engine slow down, or take more and more memory, while it is used."""

import click

from engine_host.cli.bench.lab import exit_of, measured_by_host
from engine_host.cli.bench.lab_text import report_lines
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals
from engine_host.cli.start.host import connected_for_model
from engine_host.protocol.bench.lab import RunBench, WorkloadName
from engine_host.protocol.operations import bench as ops


@click.command("soak")
@click.option("--engine", metavar="ENGINE", help="Of several that run: its name or id.")
@click.option("--continuous", is_flag=True, help="6 sessions up to 25,000 tokens, instead of 20 short ones.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Sessions, instead of 20 or 6.")
@click.option("--seed", type=click.IntRange(0, (1 << 53) - 1), help="Repeats the prompts of another time.")
@command("sndr bench soak", "sndr bench soak --continuous --rounds 20")
def lab_soak(
    out: Output, engine: str | None, continuous: bool, rounds: int | None, seed: int | None
) -> Exit | None:
    """Ask an engine in sessions of five turns, and tell whether later ones are worse.

    TTFT and the time a token are compared session by session, and the memory of its processes, here and on
    the GPUs, each with a 98 % interval. Exit code 1 where memory grew by more than 200 MiB, less than
    0.8 of the speed is left, or a request failed; what cannot be told from noise fails nothing. Ctrl+C keeps
    what was measured.
    """
    workload = WorkloadName.SOAK_CONTINUOUS if continuous else WorkloadName.SOAK
    asked = RunBench(workload=workload, engine=engine, rounds=rounds, seed=seed)
    with signals(), connected_for_model() as client:
        names, interrupted = measured_by_host(out, client, asked)
        run = client.call(ops.BENCH_RUN, id=names[0])
    out.result(run, report_lines(run))
    if interrupted:
        return Exit.INTERRUPTED
    return Exit.FAILED if run.drifted else exit_of([run])
