"""The frame of the unit, the watchdog and the install script, which both kinds of service share."""

from collections.abc import Sequence

from engine_host.deploy.deployment import Deployment
from engine_host.deploy.targets.parts import (
    DOWNLOAD,
    OVERLAY,
    SECRETS,
    heading,
    models_in_home,
    rendering,
    script_head,
)
from engine_host.deploy.targets.quoting import unit_plain
from engine_host.deploy.targets.units import FOLDER, Section, unit_text
from engine_host.deploy.watchdog import UNITS as WATCHDOG_UNITS
from engine_host.deploy.watchdog import watchdog_files
from engine_host.protocol.launch.deploy import RenderedFile, Rendering, RenderTarget
from engine_host.protocol.launch.plans import Finding

Entries = Sequence[tuple[str, str]]
# Below a person's home. The watchdog's units are systemd's own in either case.
_SYSTEMD_FOLDER = ".config/systemd/user"
_FOLDERS = {RenderTarget.SYSTEMD: _SYSTEMD_FOLDER, RenderTarget.QUADLET: ".config/containers/systemd"}
_SUFFIXES = {RenderTarget.SYSTEMD: "service", RenderTarget.QUADLET: "container"}
# Quadlet's service is generated, which cannot be enabled: its unit says by itself when it starts.
_BEGINS = {RenderTarget.SYSTEMD: "enable --now", RenderTarget.QUADLET: "start"}
RESTARTS: Entries = (("Restart", "on-failure"), ("RestartSec", "10"))
_INSTALL = """{head}
folder=$HOME/{folder}
mkdir -p "$folder" "$HOME/{models}"
{copies}
# The values that a person filled in stay.
[ -f "$folder/{secrets}" ] || install -m 600 "$here/{secrets}" "$folder/{secrets}"
systemctl --user daemon-reload
if [ "${{1:-}}" != --no-start ]; then
    systemctl --user {begins} {name}.service
    systemctl --user enable --now {name}-watchdog.timer
fi
echo "{name} is installed; journalctl --user --unit {name} --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
"""


def unit_name(deployment: Deployment, target: RenderTarget) -> str:
    """Return the name of the unit file of a start."""
    return f"{deployment.name}.{_SUFFIXES[target]}"


def watchdog_units(deployment: Deployment) -> tuple[str, ...]:
    """Return the names of the watchdog's units: its service and its timer."""
    return tuple(pattern.format(name=deployment.name) for pattern in WATCHDOG_UNITS)


def service_rendering(
    target: RenderTarget,
    deployment: Deployment,
    sections: Sequence[Section],
    *,
    about: str,
    needed: Entries = (),
    check: str,
    stop: str,
    findings: Sequence[Finding] = (),
) -> Rendering:
    """Return a service as files: its unit with the sections given, the watchdog, and what installs both.

    `needed` are conditions in the unit's own section.
    """
    begin = (
        ("Description", unit_plain(deployment.title, {})),
        *needed,
        ("StartLimitIntervalSec", "600"),
        ("StartLimitBurst", "5"),
    )
    framed = (("Unit", begin), *sections, ("Install", (("WantedBy", "default.target"),)))
    name = unit_name(deployment, target)
    unit = RenderedFile(name=name, text=unit_text(heading(deployment), framed), about=about)
    return rendering(
        target,
        deployment,
        (
            unit,
            *watchdog_files(deployment, native=target is RenderTarget.SYSTEMD),
            _install_script(target, deployment),
        ),
        check=check,
        start="./install.sh",
        stop=stop,
        findings=findings,
    )


def _install_script(target: RenderTarget, deployment: Deployment) -> RenderedFile:
    """A script that puts unit files where systemd looks for them, and what they need beside."""
    name = deployment.name
    units = {unit_name(deployment, target): _FOLDERS[target]}
    units |= dict.fromkeys(watchdog_units(deployment), _SYSTEMD_FOLDER)
    programs = ("watchdog.py", *((DOWNLOAD,) if deployment.fetched else ()))
    copies = [f'install -D -m 644 "$here/{unit}" "$HOME/{folder}/{unit}"' for unit, folder in units.items()]
    copies += [f'install -m 755 "$here/{program}" "$folder/{program}"' for program in programs]
    if deployment.overlay is not None:
        copies.append(f'rm -rf "$folder/{OVERLAY}" && cp -R "$here/{OVERLAY}" "$folder/{OVERLAY}"')
        copies.append('mkdir -p "$folder/ledger"')
    text = _INSTALL.format(
        head=script_head(f"Installs {name} as a service of the person who runs this.", secrets=False),
        models=models_in_home(deployment),
        folder=f"{FOLDER}/{name}",
        copies="\n".join(copies),
        secrets=SECRETS,
        begins=_BEGINS[target],
        name=name,
    )
    return RenderedFile(
        name="install.sh", text=text, executable=True, about="installs and starts the service"
    )
