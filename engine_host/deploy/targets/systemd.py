"""A start as a service of systemd that runs the engine without a container, with a watchdog."""

from collections.abc import Mapping

from engine_host.core.findings.table import finding
from engine_host.deploy.deployment import Deployment, Root
from engine_host.deploy.targets.parts import OVERLAY, SECRETS, STOP_SECONDS, models_in_home
from engine_host.deploy.targets.quoting import unit, unit_plain, unit_value
from engine_host.deploy.targets.service import RESTARTS, service_rendering, unit_name, watchdog_units
from engine_host.deploy.targets.units import command_line, folder_of
from engine_host.protocol.launch.deploy import Rendering, RenderTarget
from engine_host.protocol.launch.plans import Finding


def render(deployment: Deployment) -> Rendering:
    """The units, and the files beside them."""
    roots = _roots(deployment)
    needed = [unit_plain(f"{Root.MODELS}/{one.file}", roots) for one in deployment.downloads]
    unit_file, (check, timer) = unit_name(deployment, RenderTarget.SYSTEMD), watchdog_units(deployment)
    return service_rendering(
        RenderTarget.SYSTEMD,
        deployment,
        (("Service", _service(deployment, roots)),),
        about="the engine",
        needed=[("AssertPathExists", path) for path in needed],
        check=f"systemd-analyze --user verify {unit_file} {check} {timer}",
        stop=f"systemctl --user disable --now {timer} {unit_file}",
        findings=_findings(deployment),
    )


def _roots(deployment: Deployment) -> dict[Root, str]:
    cache = f"%C/sndr/deploy/{deployment.name}"
    return {
        Root.OVERLAY: f"{folder_of(deployment)}/{OVERLAY}",
        Root.LEDGER: f"{cache}/ledger",
        Root.CACHE: cache,
        Root.MODELS: f"%h/{models_in_home(deployment)}",
    }


def _service(deployment: Deployment, roots: Mapping[Root, str]) -> list[tuple[str, str]]:
    environment = [unit_value(f"{key}={value}", roots) for key, value in deployment.environment.items()]
    if deployment.gpus.count:
        chosen = ",".join(deployment.gpus.uuids) or ",".join(map(str, range(deployment.gpus.count)))
        environment += ["CUDA_DEVICE_ORDER=PCI_BUS_ID", f"CUDA_VISIBLE_DEVICES={chosen}"]
    program = [unit(word, roots) for word in deployment.program]
    if not deployment.here:
        # The program of a unit cannot be a variable; env's argument can.
        environment.append(f"SNDR_ENGINE={deployment.program[0]}")
        program = ["/usr/bin/env", "${SNDR_ENGINE}", *program[1:]]
    words = [unit(word, roots) for word in deployment.listening(deployment.address)]
    folder, cache = folder_of(deployment), f"sndr/deploy/{deployment.name}"
    # Only an engine with patches writes down what became of them.
    caches = [cache, *([f"{cache}/ledger"] if deployment.overlay is not None else [])]
    return [
        ("Type", "exec"),
        *(("Environment", one) for one in environment),
        ("EnvironmentFile", f"-{folder}/{SECRETS}"),
        ("CacheDirectory", " ".join(caches)),
        ("WorkingDirectory", folder),
        ("ExecStart", command_line([*program, *words])),
        *RESTARTS,
        ("TimeoutStopSec", str(STOP_SECONDS)),
        # The engine's other processes end with the first one, or are killed with it.
        ("KillMode", "mixed"),
        ("OOMPolicy", "stop"),
        ("LimitNOFILE", "65536"),
        ("LimitMEMLOCK", "infinity"),
        ("LimitCORE", "0"),
        ("UMask", "0077"),
        # CUDA compiles code and opens /dev/nvidia*: no MemoryDenyWriteExecute, no PrivateDevices.
        ("NoNewPrivileges", "yes"),
        ("LockPersonality", "yes"),
        ("RestrictRealtime", "yes"),
        ("RestrictSUIDSGID", "yes"),
        ("SystemCallArchitectures", "native"),
        ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK"),
    ]


def _findings(deployment: Deployment) -> list[Finding]:
    if deployment.here:
        return []
    return [
        finding(
            "render.engine-on-path",
            name=deployment.program[0],
            program=list(deployment.program),
            secrets=SECRETS,
            engine=deployment.engine.value,
            version=deployment.version,
        )
    ]
