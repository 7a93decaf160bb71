"""A watchdog for a service of systemd: an engine that hangs is restarted, one that is busy is not."""

from collections.abc import Iterator
from pathlib import Path

from engine_host.deploy.build import WATCHDOG_SECONDS
from engine_host.deploy.deployment import Deployment, Root
from engine_host.deploy.targets.parts import DOWNLOAD, SECRETS, check_body, heading, models_in_home
from engine_host.deploy.targets.quoting import bracketed, unit, unit_plain
from engine_host.deploy.targets.units import command_line, folder_of, unit_text
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.deploy import RenderedFile

UNITS = ("{name}-watchdog.service", "{name}-watchdog.timer")
_PROGRAM = Path(__file__).with_name("watchdog_program.py")
# One check asks three times, the last time for as long as a full queue may take.
_ANSWER_SECONDS = 90
# These compile kernels when they start: Triton with a C compiler, FlashInfer with ninja as well.
_COMPILERS = frozenset({PresetEngine.VLLM, PresetEngine.SGLANG})
_COMPILED_WITH = ("cc|gcc|clang", "ninja")


def watchdog_files(deployment: Deployment, *, native: bool) -> Iterator[RenderedFile]:
    """The program, the service that runs it once, and the timer that does so again and again.

    `native`: the engine runs on the machine itself, so what it compiles with has to be there.
    """
    name = deployment.name
    key = deployment.secrets[1].variable if len(deployment.secrets) > 1 else ""
    words = [
        "/usr/bin/python3",
        f"{folder_of(deployment)}/watchdog.py",
        *("--unit", f"{name}.service"),
        *("--address", f"http://{_shown(deployment.address)}:{deployment.port}"),
        *("--health", deployment.health),
        *("--path", deployment.check.path),
        *("--body", unit(check_body(deployment), {})),
        *("--start-seconds", str(deployment.start_seconds)),
        *("--answer-seconds", str(_ANSWER_SECONDS)),
        *("--failures", str(deployment.patience)),
        *("--model", unit(deployment.alias, {})),
        *_of_gpus(deployment, native=native),
        *_of_files(deployment),
    ]
    if key:
        words += ["--key-variable", key]
    service = unit_text(
        (*heading(deployment), "Asks the engine for a token, and restarts it when it does not compute."),
        (
            (
                "Unit",
                (
                    ("Description", unit_plain(f"Watchdog of {deployment.title}", {})),
                    ("After", f"{name}.service"),
                ),
            ),
            (
                "Service",
                (
                    ("Type", "oneshot"),
                    ("EnvironmentFile", f"-{folder_of(deployment)}/{SECRETS}"),
                    ("ExecStart", command_line(words)),
                    # A model that is gone is fetched again, which takes as long as it takes.
                    ("TimeoutStartSec", "infinity" if deployment.again else str(_ANSWER_SECONDS + 120)),
                    ("NoNewPrivileges", "yes"),
                    ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"),
                ),
            ),
        ),
    )
    timer = unit_text(
        heading(deployment),
        (
            ("Unit", (("Description", unit_plain(f"Watchdog of {deployment.title}", {})),)),
            (
                "Timer",
                (
                    ("OnActiveSec", str(WATCHDOG_SECONDS)),
                    ("OnUnitInactiveSec", str(WATCHDOG_SECONDS)),
                    ("AccuracySec", "5"),
                ),
            ),
            ("Install", (("WantedBy", "timers.target"),)),
        ),
    )
    program = _PROGRAM.read_text(encoding="utf-8")
    yield RenderedFile(name="watchdog.py", text=program, executable=True, about="one check")
    yield RenderedFile(name=f"{name}-watchdog.service", text=service, about="runs one check")
    yield RenderedFile(name=f"{name}-watchdog.timer", text=timer, about=f"every {WATCHDOG_SECONDS} s")


def _of_gpus(deployment: Deployment, *, native: bool) -> Iterator[str]:
    """Return what an engine on GPUs has to hold, and what it compiles kernels with."""
    if not deployment.gpus.count:
        return
    yield from ("--gpus", str(deployment.gpus.count))
    if native and deployment.engine in _COMPILERS:
        for program in _COMPILED_WITH:
            yield from ("--needs", program)
        if deployment.here:
            yield from ("--programs", unit(str(Path(deployment.program[0]).parent), {}))


def _of_files(deployment: Deployment) -> Iterator[str]:
    """Return the files of the model, and what brings them back where the watchdog was told that it may."""
    for path in (deployment.files or (deployment.model,)) if deployment.local else ():
        yield from ("--file", unit(path, {}))
    for one in deployment.downloads:
        yield from (
            "--file",
            unit(f"{Root.MODELS}/{one.file}", {Root.MODELS: f"%h/{models_in_home(deployment)}"}),
        )
    if deployment.awaited:
        yield "--awaited"
    if deployment.again:
        yield from ("--rehydrate", f"{folder_of(deployment)}/{DOWNLOAD}")


def _shown(address: str) -> str:
    if address in {"0.0.0.0", "::"}:
        return "127.0.0.1"
    return bracketed(address)
