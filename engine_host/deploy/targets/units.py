"""The parts that unit files of systemd and Quadlet share: text, folders, the script that installs them."""

from collections.abc import Sequence

from engine_host.deploy.deployment import Deployment
from engine_host.deploy.targets.parts import OVERLAY, SECRETS, models_in_home, script_head
from engine_host.protocol.deploy import RenderedFile

Section = tuple[str, Sequence[tuple[str, str]]]
# Below a person's home; `%h` in a unit is that home.
FOLDER = ".local/share/sndr/deploy"
SYSTEMD_FOLDER = ".config/systemd/user"
QUADLET_FOLDER = ".config/containers/systemd"
_INSTALL = """{head}
units=$HOME/{units}
folder=$HOME/{folder}
mkdir -p "$units" "$folder" "$HOME/{models}"
{copies}
# The values that a person filled in stay.
[ -f "$folder/{secrets}" ] || install -m 600 "$here/{secrets}" "$folder/{secrets}"
systemctl --user daemon-reload
if [ "${{1:-}}" != --no-start ]; then
    {start}
fi
echo "{name} is installed; journalctl --user --unit {name} --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
"""


def unit_text(comments: Sequence[str], sections: Sequence[Section]) -> str:
    """A unit file."""
    lines = [f"# {comment}" for comment in comments]
    for name, entries in sections:
        lines += ["", f"[{name}]", *(f"{key}={value}" for key, value in entries)]
    return "\n".join(lines) + "\n"


def command_line(words: Sequence[str]) -> str:
    """A command line over several lines, an option with its value on each."""
    lines: list[list[str]] = []
    for word in words:
        if not lines or word.lstrip('"').startswith("-"):
            lines.append([word])
        else:
            lines[-1].append(word)
    return " \\\n    ".join(" ".join(line) for line in lines)


def folder_of(deployment: Deployment) -> str:
    """Return the folder of a unit's files, with systemd's word for the home."""
    return f"%h/{FOLDER}/{deployment.name}"


def install_script(
    deployment: Deployment, units: str, unit_names: Sequence[str], others: Sequence[str]
) -> RenderedFile:
    """A script that puts unit files where systemd looks for them, and what they need beside."""
    name = deployment.name
    copies = [f'install -m 644 "$here/{unit}" "$units/{unit}"' for unit in unit_names]
    copies += [f'install -m 755 "$here/{other}" "$folder/{other}"' for other in others]
    if deployment.overlay is not None:
        copies.append(f'rm -rf "$folder/{OVERLAY}" && cp -R "$here/{OVERLAY}" "$folder/{OVERLAY}"')
        copies.append('mkdir -p "$folder/ledger"')
    generated = units == QUADLET_FOLDER
    start = [f"systemctl --user {'start' if generated else 'enable --now'} {name}.service"]
    start.append(f"systemctl --user enable --now {name}-watchdog.timer")
    text = _INSTALL.format(
        head=script_head(f"Installs {name} as a service of the person who runs this.", secrets=False),
        units=units,
        models=models_in_home(deployment),
        folder=f"{FOLDER}/{name}",
        copies="\n".join(copies),
        secrets=SECRETS,
        start="\n    ".join(start),
        name=name,
    )
    return RenderedFile(
        name="install.sh", text=text, executable=True, about="installs and starts the service"
    )
