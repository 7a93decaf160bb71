"""`sndr engine` and `sndr jobs`: servers that can run models, building one, and long work."""

from typing import Any

import click

from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.start.host import connected, find_or_start
from engine_host.cli.text import job_progress
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.sizes import duration
from engine_host.protocol.engines import (
    Backend,
    Installation,
    InstallationPage,
    ServerBuild,
    SpeedComparison,
)
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops


@click.group(cls=WholeHelp)
def engine() -> None:
    """List, build and compare the servers that run models."""


@engine.command("list")
@command("sndr engine list")
def list_servers(out: Output) -> Exit | None:
    """List the servers here and which of them runs next."""
    with find_or_start() as hold:
        page = hold.client.call(ops.SERVERS)
        environments = hold.client.call(ops.INSTALLATIONS)
    rows = [
        (
            "→" if server.choice is page.next_start else "",
            server.choice.value,
            server.version or "-",
            ", ".join(server.devices) or ("processor" if server.present else "-"),
            ", ".join(server.kv_types) or "-",
            server.problem.message if server.problem else "ready",
        )
        for server in page.servers
    ]
    lines = table(("next", "server", "version", "computes on", "KV types", "state"), rows)
    if page.comparison is not None:
        lines += ["", *_compared(page.comparison)]
    lines += ["", *_environments(environments)]
    installations = environments.model_dump(mode="json")["installations"]
    out.result({**page.model_dump(mode="json"), "installations": installations}, lines)
    return None


def _environments(page: InstallationPage) -> list[str]:
    rows = [
        (
            one.id,
            size(one.size) if one.size else f"needs {one.needs_free / 2**30:.0f} GiB",
            _state(one),
            "for this machine" if one.recommended else "",
        )
        for one in page.installations
    ]
    return table(("vLLM", "disk", "state", "note"), rows)


def _state(one: Installation) -> str:
    if one.changing:
        return "being installed or removed"
    state = one.problem.message if one.problem else ("ready" if one.present else "not installed")
    if one.leftover:
        state += f"; cut-off work left {size(one.leftover)}, which the next install frees"
    return state


@engine.command("build")
@click.argument("name", type=click.Choice(["llama.cpp"]))
@click.option(
    "--backend",
    type=click.Choice([backend.value for backend in Backend]),
    default=Backend.AUTO.value,
    show_default=True,
    help="Backend; auto: an NVIDIA GPU with CUDA, else Vulkan, where there is one, else the "
    "processor. vulkan also serves GPUs of AMD and Intel.",
)
@command("sndr engine build llama.cpp", "sndr engine build llama.cpp --backend cuda")
def build(out: Output, name: str, backend: str) -> Exit | None:
    """Compile the engine for this machine's GPU or processor; done once a machine, Ctrl+C cancels.

    The build that was asked for last is the one that runs: one that was finished before comes from the
    cache, in seconds.
    """
    request = ServerBuild(backend=Backend(backend))
    with find_or_start() as hold:
        job = begin(hold.client, lambda: hold.client.call(ops.BUILD_SERVER, request), out)
    took = (job.ended_at or job.created_at) - (job.started_at or job.created_at)
    out.result(job, [f"{name} is built ({duration(took)}).", *_details(job.result)])
    return None


@engine.command("install")
@click.argument("name", type=click.Choice(["vllm"]))
@click.option("--version", "version", help="Version (default: the current one).")
@click.option("--build", "build_", type=click.Choice(["cuda", "cpu"]), help="Build for a GPU or the CPU.")
@command("sndr engine install vllm", "sndr engine install vllm --build cpu")
def install(out: Output, name: str, version: str | None, build_: str | None) -> Exit | None:
    """Install an engine into an environment of its own; Ctrl+C cancels and removes what there is of it."""
    with find_or_start() as hold:
        chosen = _installation(hold.client, version, build_)
        if chosen.present and chosen.problem is None:
            out.result(chosen, f"vLLM {chosen.id} is installed already, in {chosen.path}.")
            return None
        job = begin(hold.client, lambda: hold.client.call(ops.INSTALL, id=chosen.id), out)
    took = (job.ended_at or job.created_at) - (job.started_at or job.created_at)
    out.result(job, [f"{name} {chosen.id} is installed ({duration(took)}).", *_details(job.result)])
    return None


@engine.command("remove")
@click.argument("name", type=click.Choice(["vllm"]))
@click.option("--version", "version", help="Version (default: the current one).")
@click.option("--build", "build_", type=click.Choice(["cuda", "cpu"]), help="Build for a GPU or the CPU.")
@command("sndr engine remove vllm --version 0.32.0 --build cpu")
def remove(out: Output, name: str, version: str | None, build_: str | None) -> Exit | None:
    """Remove an engine's environment from this machine."""
    with find_or_start() as hold:
        chosen = _installation(hold.client, version, build_)
        if not chosen.present and chosen.problem is None and not chosen.leftover:
            out.result(chosen, f"vLLM {chosen.id} is not installed.")
            return None
        job = begin(hold.client, lambda: hold.client.call(ops.REMOVE_INSTALLATION, id=chosen.id), out)
    out.result(job, f"{name} {chosen.id} is removed.")
    return None


def _installation(client: ControlClient, version: str | None, build_: str | None) -> Installation:
    page = client.call(ops.INSTALLATIONS)
    if build_ is None:
        build_ = next(one.build for one in page.installations if one.recommended)
    for one in page.installations:
        if one.build == build_ and version in {None, one.version}:
            return one
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no vLLM {version} for {build}.", version=version, build=build_),
        cause=tr("There are {names}.", names=", ".join(one.id for one in page.installations)),
        fix=Fix(text="See which there are.", command="sndr engine list"),
        evidence={"version": version, "build": build_},
    )


@engine.command("compare")
@command("sndr engine compare")
def compare(out: Output) -> Exit | None:
    """Measure the prebuilt server against the built one, in one run on one model."""
    with find_or_start() as hold:
        job = begin(hold.client, lambda: hold.client.call(ops.COMPARE_SERVERS), out)
        page = hold.client.call(ops.SERVERS)
    if page.comparison is None:
        raise HostError(
            Reason.INTERNAL,
            "The comparison ended without a result.",
            fix=Fix(text="See what the host says.", command="sndr logs host"),
            evidence={"job": job.id},
        )
    out.result(page.comparison, _compared(page.comparison))
    return None


def _details(result: dict[str, Any]) -> list[str]:
    """The result of a job as lines; the seconds of its steps in the order of the steps."""
    lines = []
    for name, value in result.items():
        label = "from the cache" if name == "from_cache" else name.replace("_", " ")
        if isinstance(value, bool):
            lines.append(f"  {label}: {'yes' if value else 'no'}")
        elif isinstance(value, list):
            lines += [f"  {label}: {', '.join(map(str, value))}"] if value else []
        elif name == "seconds" and isinstance(value, dict):
            lines += [f"  {step}: {duration(seconds)}" for step, seconds in value.items()]
        else:
            lines.append(f"  {label}: {value}")
    return lines


def _compared(comparison: SpeedComparison) -> list[str]:
    rows = [
        (
            row.server.value,
            row.server_version,
            str(row.streams),
            f"{row.decode_rate:.1f} ({row.low:.1f} to {row.high:.1f})",
            duration(row.ttft),
        )
        for row in comparison.rows
    ]
    head = f"Measured on {comparison.model}, {comparison.repeats} repeats, median (lowest to highest):"
    return [head, *table(("server", "version", "streams", "tokens/s", "TTFT"), rows)]


@click.group(cls=WholeHelp, invoke_without_command=True)
@command("sndr jobs", "sndr --host gpu jobs")
def jobs(out: Output) -> Exit | None:
    """List long work, newest first."""
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        return None
    with connected() as client:
        page = client.call(ops.JOBS)
    rows = [(job.id, job.state.value, job.title, _where(job)) for job in page.jobs]
    out.result(page, table(("id", "state", "job", "note"), rows) if rows else "No jobs.")
    return None


def _where(job: Job) -> str:
    if job.error is not None:
        return job.error.message
    if job.state is JobState.QUEUED and job.behind:
        return f"behind {job.behind}"
    if job.state is JobState.RUNNING and job.step is not None:
        return f"{job.step.number}/{job.step.of} {job.step.name} {job.step.detail}".rstrip()
    return job.undone or ""


@jobs.command("cancel")
@click.argument("job")
@command("sndr jobs cancel 3f2a9c1d")
def cancel(out: Output, job: str) -> Exit | None:
    """Cancel a job and wait for its end; says what became of it, what was undone and what is left."""
    with connected() as client:
        ended = job_progress.cancel(client, job, out)
    why = "" if ended.error is None or ended.error.reason is Reason.CANCELLED else ended.error.message
    out.result(
        ended, " ".join(filter(None, (f"{ended.title}: {ended.state}.", why, ended.undone, ended.left)))
    )
    return None
