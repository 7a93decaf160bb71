"""`sndr bench endpoint`: the endpoint's own share of what an editor or an agent waits for."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command, echo
from engine_host.cli.start.follow import signals, stop_engine, until_ready
from engine_host.cli.start.host import HostHold, find_or_start
from engine_host.cli.start.options import resolved
from engine_host.cli.start.running import GONE, only_one
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.client.sync import ControlClient
from engine_host.connect.facts import key_from
from engine_host.core.errors import HostError
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchRequest, StartRequest
from engine_host.protocol.operations import table as ops

_NAME = "sndr-bench"
_STREAMS = (1, 8, 64)
_ROOM = 512
"""Tokens of a question, and what a model puts around it."""


@click.command("endpoint")
@click.argument("model", required=False)
@click.option(
    "--streams",
    type=click.IntRange(1, 1_000),
    multiple=True,
    help="Streams at once; several times (default: 1, 8 and 64).",
)
@click.option(
    "--tokens",
    type=click.IntRange(2),
    default=96,
    show_default=True,
    help="Of a stream; fewer where more than eight run at once on a slow engine.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=7,
    show_default=True,
    help="Rounds a side; fewer than seven decide nothing.",
)
@click.option("--pairs", type=click.IntRange(2), default=15, show_default=True, help="Questions for TTFT.")
@click.option(
    "--against",
    metavar="URL",
    help="Measure MODEL, a public id of this endpoint, against this other address, such as the endpoint of"
    " the machine to which a route leads. Nothing is started.",
)
@click.option("--against-model", metavar="NAME", help="The model's name there, where it is another.")
@command("sndr bench endpoint", "sndr bench endpoint qwen3-8b --streams 8")
def endpoint(
    out: Output,
    model: str | None,
    streams: tuple[int, ...],
    tokens: int,
    repeats: int,
    pairs: int,
    against: str | None,
    against_model: str | None,
) -> Exit | None:
    """Measure an engine directly and through the endpoint, in turns.

    The engine that runs, by its name where there are several, or a MODEL (an id or a path), which is started
    for it; without either a model of 0.6 B random weights, which is as fast as a trained one. Says what the
    endpoint adds to the time to first token, and its share of the engine's speed, and whether both reach
    their goals, as far as the rounds tell: "NOT DECIDED" says how many more would; 1 unless all are reached.
    A key of the endpoint, where it needs one, is read from the variable SNDR_API_KEY.

    With --against, both sides are addresses: `sndr bench endpoint coder --against http://gpu:8020
    --against-model qwen3` says what the way through this machine costs.
    """
    # Read by the measurement itself; one that it would refuse starts nothing.
    key_from(os.environ)
    if host_name := chosen_host():
        raise click.UsageError(f"This measures the endpoint of this machine, without --host {host_name}.")
    if against_model is not None and against is None:
        raise click.UsageError("--against-model names the model at --against.")
    if against is not None and model is None:
        raise click.UsageError("With --against, name the MODEL: a public id of this endpoint.")
    if against is not None and not against.startswith(("http://", "/")):
        raise click.UsageError("--against takes http://HOST:PORT, or the path of a Unix socket.")
    counts = streams or _STREAMS
    sizes = {"tokens": tokens, "repeats": repeats, "pairs": pairs}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    words += ["--streams", *map(str, counts), *(["--json"] if out.as_json else [])]
    with signals(), find_or_start() as hold:
        if against is not None and model is not None:
            words += ["--bare", against.removesuffix("/").removesuffix("/v1"), "--model", model]
            words += ["--bare-model", against_model] if against_model is not None else []
            return _measured(out, hold, model, words)
        with _engine(out, hold, model, max(counts), tokens) as engine:
            socket = hold.client.folders.run / f"{engine.plan.id}.sock"
            return _measured(out, hold, engine.name, [*words, "--bare", str(socket), "--model", engine.name])


def _measured(out: Output, hold: HostHold, name: str, words: list[str]) -> Exit | None:
    """Run the measurement in a process of its own, and print what it says."""
    host = hold.client.call(ops.HOST)
    url = host.endpoint.local_url
    if url is None or not url.startswith("http://"):
        raise HostError(
            Reason.UNSUPPORTED,
            "The endpoint is not served." if url is None else "The endpoint is served with TLS.",
            cause="What is measured is plain HTTP of this machine.",
            fix="Take the certificate out of the settings for the measurement.",
        )
    words = [*words, "--endpoint", url.removesuffix("/v1"), "--pid", str(host.pid)]
    done = subprocess.run(
        [*command_of(OwnProgram.BENCH_ENDPOINT), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if out.as_json else None,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise HostError(
            Reason.ENGINE_CRASHED,
            tr("{name} could not be measured.", name=name),
            cause=done.stderr.strip().rpartition("\n")[2] if done.stderr else "It is said above.",
            fix="`sndr status` says how engine and endpoint are; with keys, set SNDR_API_KEY.",
        )
    echo(done.stdout.rstrip("\n"))
    return None if done.returncode == 0 else Exit.FAILED


@contextlib.contextmanager
def _engine(out: Output, hold: HostHold, model: str | None, streams: int, tokens: int) -> Iterator[Engine]:
    """The engine that runs, or one that is ended afterwards."""
    client = hold.client
    alive = [one for one in client.call(ops.ENGINES).engines if one.state not in GONE]
    # What is asked for by name is that engine, not another one of the same model.
    named = [one for one in alive if model is None or model in (one.name, one.id)]
    if named:
        engine = only_one(named, "Name one of them, or a MODEL, which is started for it.")
        assert engine is not None
        yield engine
        return
    with tempfile.TemporaryDirectory(prefix="sndr-") as scratch:
        if model is None:
            out.note("No engine runs: writing a random model of 0.6 B parameters.")
            path = Path(scratch) / "random.gguf"
            subprocess.run([*command_of(OwnProgram.BENCH_ENDPOINT), "--write", str(path)], check=True)
            model = str(path)
        engine = _started(out, client, model, streams, tokens)
        try:
            yield engine
        finally:
            # An interrupted connection may have half an answer in it.
            with client.again() as fresh:
                stop_engine(fresh, engine, now=True)


def _started(out: Output, client: ControlClient, model: str, streams: int, tokens: int) -> Engine:
    request = LaunchRequest(
        model=resolved(model),
        name=_NAME,
        overrides=Overrides(context=tokens + _ROOM, streams=streams),
    )
    plan = client.call(ops.PLAN, request)
    began = time.monotonic()
    started = client.call(ops.START, StartRequest(plan=plan.id))
    out.note(f"starting {plan.model} as {_NAME}")
    engine = until_ready(client, started, out)
    out.note(f"ready after {time.monotonic() - began:.1f} s")
    return engine
