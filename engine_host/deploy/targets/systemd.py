"""A start as a service of systemd that runs the engine without a container, with a watchdog."""

from engine_host.core.findings.table import finding
from engine_host.deploy.deployment import Deployment, Root
from engine_host.deploy.targets.parts import (
    OVERLAY,
    SECRETS,
    STOP_SECONDS,
    heading,
    models_in_home,
    shared_files,
)
from engine_host.deploy.targets.quoting import unit, unit_plain, unit_value
from engine_host.deploy.targets.units import (
    SYSTEMD_FOLDER,
    Section,
    command_line,
    folder_of,
    install_script,
    unit_text,
)
from engine_host.deploy.watchdog import UNITS as WATCHDOG_UNITS
from engine_host.deploy.watchdog import watchdog_files
from engine_host.protocol.deploy import RenderedFile, Rendering, RenderTarget
from engine_host.protocol.plans import Finding


def render(deployment: Deployment) -> Rendering:
    """The units, and the files beside them."""
    name = deployment.name
    service = RenderedFile(
        name=f"{name}.service", text=unit_text(heading(deployment), _sections(deployment)), about="the engine"
    )
    watchdogs = [pattern.format(name=name) for pattern in WATCHDOG_UNITS]
    others = ["watchdog.py", *(["download.sh"] if deployment.downloads else [])]
    install = install_script(deployment, SYSTEMD_FOLDER, [service.name, *watchdogs], others)
    fetch = "./download.sh && " if deployment.downloads else ""
    return Rendering(
        target=RenderTarget.SYSTEMD,
        name=name,
        title=deployment.title,
        files=(service, *watchdog_files(deployment), install, *shared_files(deployment)),
        check=f"systemd-analyze --user verify {name}.service {watchdogs[0]} {watchdogs[1]}",
        start=f"{fetch}./install.sh",
        stop=f"systemctl --user disable --now {watchdogs[1]} {name}.service",
        findings=(*deployment.findings, *_findings(deployment)),
    )


def _sections(deployment: Deployment) -> list[Section]:
    name, folder = deployment.name, folder_of(deployment)
    roots = {
        Root.OVERLAY: f"{folder}/{OVERLAY}",
        Root.LEDGER: f"%C/sndr/deploy/{name}/ledger",
        Root.CACHE: f"%C/sndr/deploy/{name}",
        Root.MODELS: f"%h/{models_in_home(deployment)}",
    }
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
    needed = [unit_plain(f"{Root.MODELS}/{one.file}", roots) for one in deployment.downloads]
    return [
        (
            "Unit",
            (
                ("Description", unit_plain(deployment.title, {})),
                *(("AssertPathExists", path) for path in needed),
                ("StartLimitIntervalSec", "600"),
                ("StartLimitBurst", "5"),
            ),
        ),
        (
            "Service",
            (
                ("Type", "exec"),
                *(("Environment", one) for one in environment),
                ("EnvironmentFile", f"-{folder}/{SECRETS}"),
                ("CacheDirectory", f"sndr/deploy/{name} sndr/deploy/{name}/ledger"),
                ("WorkingDirectory", folder),
                ("ExecStart", command_line([*program, *words])),
                ("Restart", "on-failure"),
                ("RestartSec", "10"),
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
            ),
        ),
        ("Install", (("WantedBy", "default.target"),)),
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
