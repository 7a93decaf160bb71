"""`sndr patches`: the catalogue, preflight, switches, and what took effect in a running engine."""

import os

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import counted_hardware
from engine_host.cli.start.host import connected, find_or_start
from engine_host.cli.start.options import LaunchOptions, launch_options
from engine_host.cli.start.reading import reading
from engine_host.cli.start.running import GONE, only_one
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import none_started
from engine_host.core.sizes import duration
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import (
    BisectRequest,
    BisectResult,
    BisectVerdict,
    EngineKind,
    LaunchRequest,
)
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.patches import (
    BisectCheck,
    CheckVerdict,
    EnginePatches,
    Patch,
    PatchCheck,
    PatchEvidence,
    PatchOutcome,
    PatchQuery,
    SwitchPatches,
)
from engine_host.protocol.presets import ResolvePreset

_FINE = {CheckVerdict.APPLIES, CheckVerdict.OUT_OF_RANGE, CheckVerdict.UPSTREAM_MERGED}


@click.group(cls=WholeHelp)
def patches() -> None:
    """See, check and switch the patches that vLLM is started with."""


@patches.command("list")
@click.option("--family", help="Only this family and those below it.")
@command("sndr patches list --family attention")
def list_patches(out: Output, family: str | None) -> Exit | None:
    """List the catalogue in order of application."""
    with reading() as host:
        page = host.call(ops.PATCHES)
    families = sorted({patch.family for patch in page.patches})
    if family is not None and not any(one == family or one.startswith(f"{family}.") for one in families):
        above = {*families, *(one.partition(".")[0] for one in families)}
        raise HostError(
            Reason.PATCH_UNKNOWN,
            tr("There is no family {family}.", family=family),
            cause=tr("There are: {families}.", families=", ".join(families)),
            fix=meant_or(Fix(text="See which there are.", command="sndr patches list"), family, above),
            evidence={"family": family},
        )
    shown = [
        patch
        for patch in page.patches
        if family is None or patch.family == family or patch.family.startswith(f"{family}.")
    ]
    rows = [
        (patch.id, patch.switch, patch.family, "+".join(patch.kinds), patch.applies_to.vllm, patch.title)
        for patch in shown
    ]
    lines = table(("patch", "switch", "family", "kind", "vLLM", "what it does"), rows)
    for fault in page.faults:
        lines.append(f"Not usable: {fault.problem.message}")
    out.result(page.model_copy(update={"patches": tuple(shown)}), lines)
    return None


@patches.command("show")
@click.argument("patch")
@click.option("--vllm", help="Version, environment, venv or wheel whose source is shown.")
@command("sndr patches show json-whitespace-limit")
def show(out: Output, patch: str, vllm: str | None) -> Exit | None:
    """Show one patch: the problem, what it touches as a diff, and what it was measured to do."""
    with reading() as host:
        detail = host.call(ops.PATCH, PatchQuery(vllm=_meant(vllm)), id=patch)
    lines = [*_about(detail.patch), ""]
    for operation in detail.operations:
        versions = f" (vLLM {operation.vllm})" if operation.vllm else ""
        lines += [f"{operation.kind} {operation.target}{versions}", operation.diff, ""]
    if detail.check is not None:
        lines.append(f"In vLLM {detail.vllm}: {_verdict(detail.check.verdict)}.")
        if detail.check.needed_by:
            lines.append(f"Needed by: {', '.join(detail.check.needed_by)}.")
    out.result(detail, lines)
    return None


@patches.command("check")
@click.option("--vllm", help="Version, environment, venv or wheel; the one that would run without this.")
@command("sndr patches check", "sndr patches check --vllm 0.32.0")
def check(out: Output, vllm: str | None) -> Exit | None:
    """Say of each patch whether it fits a vLLM, without starting it; 5 when one does not or is unusable."""
    with reading() as host:
        faults = host.call(ops.PATCHES).faults
        page = host.call(ops.CHECK_PATCHES, PatchQuery(vllm=_meant(vllm)))
    lines = [f"vLLM {page.vllm} ({page.source})", ""]
    lines += table(
        ("patch", "verdict", "needed by"),
        [(one.patch, _verdict(one.verdict), ", ".join(one.needed_by)) for one in page.checks],
    )
    for one in page.checks:
        for operation in one.operations:
            if operation.verdict is not CheckVerdict.APPLIES:
                lines += ["", f"{one.patch}: {operation.target}: {operation.detail}"]
                lines += [f"  {line}" for line in operation.nearest.splitlines()]
    for fault in faults:
        lines += ["", f"Not usable: {fault.problem.message}"]
    out.result(page, lines)
    return None if not faults and all(one.verdict in _FINE for one in page.checks) else Exit.ENGINE


@patches.command("plan")
@click.argument("model", required=False)
@click.option("--preset", metavar="ID", help="A preset in place of MODEL; its files need not be here.")
@click.option(
    "--hardware",
    metavar="[N x ]ID",
    help="With --preset: the GPUs, e.g. `2x rtx-3090` (sndr presets hardware).",
)
@click.option("--count", type=click.IntRange(1, 8), help="With --hardware: how many of them.")
@launch_options
@command("sndr patches plan qwen3-8b", "sndr patches plan --preset qwen3-8b-k8v4-24 --hardware rtx-3090")
def plan(
    out: Output,
    model: str | None,
    preset: str | None,
    hardware: str | None,
    count: int | None,
    options: LaunchOptions,
) -> Exit | None:
    """Say which patches a start of MODEL would get here, or one of a preset, and why each other one not."""
    if (model is None) is not bool(preset):
        raise click.UsageError("Give either a MODEL or --preset.")
    if preset is None and (hardware or count):
        raise click.UsageError("--hardware and --count go with --preset.")
    hardware, count = counted_hardware(hardware, count)
    if count is not None and hardware is None:
        raise click.UsageError("--count goes with --hardware.")
    checked: tuple[PatchCheck, ...] = ()
    if preset is not None:
        resolve = ResolvePreset(
            preset=preset, hardware=hardware, count=count, overrides=options.request("").overrides
        )
        with reading() as host:
            planned = host.call(ops.PLAN_PRESET_PATCHES, resolve)
    else:
        request = _for_vllm(options.request(model or ""))
        with find_or_start() as hold:
            where = PatchQuery(vllm=request.installation)
            checked = hold.client.call(ops.CHECK_PATCHES, where).checks
            planned = hold.client.call(ops.PLAN_PATCHES, request)
    wrong = {one.patch: _verdict(one.verdict) for one in checked if one.verdict not in _FINE}
    count = len(planned.chosen)
    lines = [
        f"{count} patch{'es' if count != 1 else ''}, in this order:",
        *(
            f"  {name}{f'  (left out there: {wrong[name]})' if name in wrong else ''}"
            for name in planned.chosen
        ),
    ]
    if planned.left_out:
        rows = [(one.patch, one.reason, one.detail) for one in planned.left_out]
        lines += ["", *table(("left out", "reason", "because"), rows)]
    out.result(planned, lines)
    return None


@patches.command("explain")
@click.argument("patch")
@click.argument("model")
@launch_options
@command("sndr patches explain json-whitespace-limit qwen3-8b")
def explain(out: Output, patch: str, model: str, options: LaunchOptions) -> Exit | None:
    """Say why a start of MODEL would or would not get PATCH on this machine."""
    request = _for_vllm(options.request(model))
    with find_or_start() as hold:
        detail = hold.client.call(ops.PATCH, PatchQuery(), id=patch)
        planned = hold.client.call(ops.PLAN_PATCHES, request)
    decision = next((one for one in planned.left_out if one.patch == patch), None)
    lines = [*_about(detail.patch), ""]
    if decision is not None:
        lines.append(f"It would be left out: {decision.reason} ({decision.detail}).")
    elif detail.check is not None and detail.check.verdict not in _FINE:
        lines.append("It would be part of the start, and every process would leave it out.")
    else:
        lines.append("It would be applied.")
    if detail.check is not None:
        lines.append(f"In vLLM {detail.vllm}: {_verdict(detail.check.verdict)}.")
    out.result({"patch": patch, "chosen": decision is None, **(_dumped(decision) or {})}, lines)
    return None


@patches.command("switch")
@click.argument("to", type=click.Choice(["on", "off", "default"]))
@click.argument("names", nargs=-1, required=True)
@command("sndr patches switch off json-whitespace-limit", "sndr patches switch default all")
def switch(out: Output, to: str, names: tuple[str, ...]) -> Exit | None:
    """Switch patches, families or `all` on or off in the settings; holds from the next start."""
    request = SwitchPatches.model_validate({"to": to, "names": names})
    with find_or_start() as hold:
        page = hold.client.call(ops.SWITCH_PATCHES, request)
    off = [patch.id for patch in page.patches if patch.switch == "off"]
    out.result(page, f"Off now: {', '.join(off) or 'none'}. This holds from the next start.")
    return None


@patches.command("status")
@click.argument("engine", required=False)
@command("sndr patches status qwen3-8b")
def status(out: Output, engine: str | None) -> Exit | None:
    """Say which patch took effect in which process of a running engine."""
    return _live(out, engine, ops.ENGINE_PATCHES)


@patches.command("probe")
@click.argument("engine", required=False)
@command("sndr patches probe")
def probe(out: Output, engine: str | None) -> Exit | None:
    """Ask each process of a running engine what is live now; 5 when an applied patch is not."""
    return _live(out, engine, ops.PROBE_PATCHES)


@patches.command("without")
@click.argument("patch")
@click.argument("engine", required=False)
@command("sndr patches without json-whitespace-limit")
def without(out: Output, patch: str, engine: str | None) -> Exit | None:
    """Start a running engine again without PATCH."""
    with connected() as client:
        name = engine or _patched(client)
        started = client.call(ops.START_WITHOUT, id=name, patch=patch)
    message = f"{started.name} starts again without {patch} ({started.id})."
    out.result(started, [message, "Follow it: sndr status"])
    return None


@patches.command("bisect")
@click.argument("model", required=False)
@click.argument("words", nargs=-1, metavar="[-- COMMAND …]")
@click.option(
    "--check",
    "builtin",
    type=click.Choice(["starts", "answers", "same_answer"]),
    help="How a start is judged: it starts, it answers, or it answers as it does without patches.",
)
@click.option("--prompt", help="What the model is asked (default: “Say hello.”).")
@click.option("--preset", metavar="ID", help="The start of this preset, in place of a MODEL.")
@launch_options
@command("sndr patches bisect qwen3-8b --check answers", "sndr patches bisect qwen3-8b -- ./check.sh")
def bisect(
    out: Output,
    model: str | None,
    words: tuple[str, ...],
    builtin: str | None,
    prompt: str | None,
    preset: str | None,
    options: LaunchOptions,
) -> Exit | None:
    """Find the patch that makes a start of MODEL fail a check; 5 when one is found.

    COMMAND exits with 0 when all is well and with 1 to 124 when it is not; SNDR_ENDPOINT, SNDR_MODEL and
    SNDR_SOCKET (the engine's own) are set for it. Each trial starts the engine anew, in place of the one
    before it, beside what runs; at the end it runs without the culprit.
    """
    if preset is not None:
        # Without a MODEL the first word is the command's.
        words, model = (*((model,) if model else ()), *words), ""
    elif model is None:
        raise click.UsageError("Give a MODEL, or a preset with --preset ID.")
    if (builtin is None) is not bool(words):
        raise click.UsageError("Give either --check or a command after `--`.")
    check: dict[str, object] = {"command": words, "folder": os.getcwd()} if words else {"builtin": builtin}
    if prompt is not None:
        check["prompt"] = prompt
    launch = _for_vllm(options.request(model or "").model_copy(update={"preset": preset}))
    request = BisectRequest(launch=launch, check=BisectCheck.model_validate(check))
    with find_or_start() as hold:
        job = begin(hold.client, lambda: hold.client.call(ops.BISECT_PATCHES, request), out)
        stays = not hold.started_here
    found = BisectResult.model_validate(job.result)
    rows = [
        (
            str(number),
            "passed" if one.passed else "failed",
            duration(one.seconds),
            str(len(one.patches)),
            one.why,
        )
        for number, one in enumerate(found.trials, 1)
    ]
    lines = [*table(("trial", "result", "took", "patches", "why"), rows), "", found.sentence]
    if found.engine is not None and not stays:
        lines.append("It ran in a host of this command, and ended with it.")
    if found.command:
        lines.append(f"Start without: {found.command}")
    out.result(found, lines)
    return Exit.ENGINE if found.verdict is BisectVerdict.FOUND else None


def _meant(vllm: str | None) -> str | None:
    """A path as it is meant here; the host has another working folder."""
    if vllm is None or not (os.sep in vllm or vllm.endswith(".whl")):
        return vllm
    return os.path.abspath(os.path.expanduser(vllm))


def _for_vllm(request: LaunchRequest) -> LaunchRequest:
    """The same for vLLM where no engine was named: only it has patches."""
    if request.engine is not EngineKind.AUTO:
        return request
    return request.model_copy(update={"engine": EngineKind.VLLM})


def _live(out: Output, engine: str | None, operation: Operation[Nothing, EnginePatches]) -> Exit | None:
    with connected() as client:
        name = engine or _patched(client)
        found = client.call(operation, id=name)
    lines = [found.summary or "No process of this engine has said anything of patches; only vLLM has any."]
    rows = []
    dead = False
    for process in found.processes:
        for result in process.results:
            if result.outcome is PatchOutcome.PENDING:
                continue
            text = result.reason or (result.detail if result.outcome is PatchOutcome.APPLIED else "")
            if result.probe is not None:
                hits = "" if result.probe.hits is None else f", ran {result.probe.hits} times"
                said = f"; {text}" if text else ""
                text = f"live{hits}{said}" if result.probe.live else f"not live: {result.probe.why}"
                dead = dead or (result.outcome is PatchOutcome.APPLIED and not result.probe.live)
            ms = "" if result.ms is None else f"{result.ms:.1f} ms"
            rank = "" if process.rank is None else f" {process.rank}"
            rows.append((f"{process.role}{rank} {process.pid}", result.patch, result.outcome, ms, text))
    if rows:
        lines += ["", *table(("process", "patch", "outcome", "took", "note"), rows)]
    out.result(found, lines)
    return Exit.ENGINE if dead else None


def _patched(client: ControlClient) -> str:
    """The engine with patches, or the newest: what took effect is known of those that ended too.

    Raises click.UsageError where several run, HostError(no_engine_runs).
    """
    engines = client.call(ops.ENGINES).engines
    alive = [one for one in engines if one.state not in GONE]
    patched = [one for one in alive if one.plan.patches is not None]
    found = only_one(patched or alive, "Name one of them after the command.") or next(iter(engines), None)
    if found is None:
        raise HostError(
            Reason.NO_ENGINE_RUNS,
            "No engine runs.",
            cause=none_started(),
            fix=Fix(text="Start one.", command="sndr run MODEL --engine vllm"),
        )
    return found.id


def _about(patch: Patch) -> list[str]:
    lines = [
        f"{patch.id}: {patch.title}",
        f"  {patch.problem}",
        f"  family {patch.family}, risk {patch.risk}",
    ]
    lines.append(f"  vLLM {patch.applies_to.vllm}; switched {patch.switch} ({patch.switched_by})")
    if patch.default_sm:
        lines.append(f"  on by default on SM {patch.default_sm} alone")
    lines += [f"  {address}" for address in patch.upstream]
    lines += [f"  measured: {_measured(one)}" for one in patch.evidence]
    if patch.retire_when:
        lines.append(f"  retire: {patch.retire_when}")
    return lines


def _measured(one: PatchEvidence) -> str:
    before, after = (
        "not measured" if value is None else f"{value:,.12g} {one.unit}".strip()
        for value in (one.before, one.after)
    )
    where = ", ".join(word for word in (one.machine, one.pin and f"vLLM {one.pin}") if word)
    return f"{one.metric}: {before} → {after}{f' ({where})' if where else ''}"


def _verdict(verdict: CheckVerdict) -> str:
    return verdict.value.replace("_", " ")


def _dumped(decision: object) -> dict[str, object] | None:
    dump = getattr(decision, "model_dump", None)
    return None if dump is None else dump(mode="json")
