"""The parts that Docker, Podman, Compose and Quadlet share, and the scripts of the first two."""

import shlex

from engine_host.deploy.deployment import INSIDE, Deployment, Root, placed
from engine_host.deploy.targets.parts import (
    HEALTH_RETRIES,
    HEALTH_SECONDS,
    HEALTH_TIMEOUT,
    OVERLAY,
    SECRETS,
    STOP_SECONDS,
    heading,
    health_command,
    labels,
    listening,
    models_variable,
    rendering,
    script_head,
)
from engine_host.deploy.targets.quoting import continued, shell
from engine_host.protocol.launch.deploy import RenderedFile, Rendering, RenderTarget

_TEXT = """{head}name={name}
{listening}{folders}{gpus}
if [ -n "$({tool} ps --all --quiet --filter "name=^{name}\\$")" ]; then
    # It may finish what it answers just now; a removal by force alone would not wait.
    {tool} stop -t {stop_seconds} "$name" >/dev/null
    {tool} rm --force "$name" >/dev/null
fi
{tool} run --detach --name "$name" \\
    {command}
echo "$name starts; {tool} logs --follow $name shows it, and it will answer at http://$at:$port."
"""
_DOCKER_GPUS = """# SNDR_GPUS names others, by UUID: nvidia-smi -L lists them.
gpus={default}
[ -z "${{SNDR_GPUS:-}}" ] || gpus="\\"device=$SNDR_GPUS\\""
"""
_PODMAN_GPUS = """# CDI names them; SNDR_GPUS names others, by UUID: nvidia-ctk cdi list lists them.
devices=()
IFS=, read -r -a gpus <<<"${{SNDR_GPUS:-{default}}}"
for gpu in "${{gpus[@]}}"; do devices+=(--device "nvidia.com/gpu=$gpu"); done
"""


def inside(text: str) -> str:
    """A text as it is in a container."""
    return placed(text, INSIDE)


def command(deployment: Deployment) -> tuple[str, ...]:
    """Return the container's command after the entry point's program; it listens on all addresses."""
    return (*deployment.entry[1:], *map(inside, deployment.listening("0.0.0.0")))


def gpu_names(deployment: Deployment) -> tuple[str, ...]:
    """The GPUs by UUID, or by number where no UUID is known."""
    return deployment.gpus.uuids or tuple(map(str, range(deployment.gpus.count)))


def render_docker(deployment: Deployment) -> Rendering:
    """A script around `docker run`."""
    return _render(deployment, RenderTarget.DOCKER)


def render_podman(deployment: Deployment) -> Rendering:
    """A script around `podman run`."""
    return _render(deployment, RenderTarget.PODMAN)


def _render(deployment: Deployment, target: RenderTarget) -> Rendering:
    tool = target.value
    text = _TEXT.format(
        head=script_head("\n# ".join(heading(deployment)), secrets=False),
        name=deployment.name,
        folders=_folders(deployment),
        gpus=_gpus(deployment, target),
        tool=tool,
        command=_run(deployment, target),
        listening=listening(deployment),
        stop_seconds=STOP_SECONDS,
    )
    script = RenderedFile(name="start.sh", text=text, executable=True, about="runs the container")
    return rendering(
        target,
        deployment,
        (script,),
        check="bash -n start.sh",
        start="./start.sh",
        stop=f"{tool} stop {deployment.name}",
    )


def _folders(deployment: Deployment) -> str:
    lines = [] if deployment.local else [f"models={models_variable(deployment)}", 'mkdir -p "$models"']
    if deployment.overlay is not None:
        lines.append("# Where the engine says what became of each patch stays here, over containers.")
        lines.append('mkdir -p "$here/ledger"')
    return "".join(f"{line}\n" for line in lines)


def _gpus(deployment: Deployment, target: RenderTarget) -> str:
    if not deployment.gpus.count:
        return ""
    names = ",".join(gpu_names(deployment))
    if target is RenderTarget.PODMAN:
        return _PODMAN_GPUS.format(default=names)
    by_uuid = f'"device={names}"' if deployment.gpus.uuids else str(deployment.gpus.count)
    return _DOCKER_GPUS.format(default=shlex.quote(by_uuid))


def _run(deployment: Deployment, target: RenderTarget) -> str:
    options = ["--init", "--restart", "unless-stopped", "--stop-timeout", str(STOP_SECONDS)]
    options += ["--security-opt", "no-new-privileges"]
    if deployment.gpus.count:
        options += ['"${devices[@]}"'] if target is RenderTarget.PODMAN else ["--gpus", '"$gpus"']
    options += ["--shm-size", str(deployment.shm)]
    options += ["--publish", f'"$at:$port:{deployment.port}"']
    options += _mounts(deployment)
    options += ["--env-file", f'"$here/{SECRETS}"']
    for name, value in deployment.environment.items():
        options += ["--env", shlex.quote(f"{name}={inside(value)}")]
    for name, value in labels(deployment).items():
        options += ["--label", shlex.quote(f"{name}={value}")]
    options += ["--health-cmd", shlex.quote(shlex.join(health_command(deployment)))]
    options += ["--health-interval", f"{HEALTH_SECONDS}s", "--health-timeout", f"{HEALTH_TIMEOUT}s"]
    options += ["--health-retries", str(HEALTH_RETRIES)]
    options += ["--health-start-period", f"{deployment.start_seconds}s"]
    if target is RenderTarget.PODMAN:
        options += ["--health-on-failure", "kill"]
        # Otherwise SELinux keeps the container from the folders of the person and from the GPUs.
        options += ["--security-opt", "label=disable"]
    options += ["--entrypoint", deployment.entry[0]]
    words = [shell(word, {}) for word in (deployment.image, *command(deployment))]
    return continued([*options, *words], per_line=(words[0], '"${devices[@]}"'))


def _mounts(deployment: Deployment) -> list[str]:
    binds: list[tuple[str, str, str]] = []
    if deployment.overlay is not None:
        binds.append((f'"$here/{OVERLAY}"', INSIDE[Root.OVERLAY], ",readonly"))
        binds.append(('"$here/ledger"', INSIDE[Root.LEDGER], ""))
    if not deployment.local:
        binds.append(('"$models"', INSIDE[Root.MODELS], ",readonly" if deployment.downloads else ""))
    words = []
    for source, place, mode in binds:
        words += ["--mount", f"type=bind,source={source},target={place}{mode}"]
    for mount in deployment.mounts:
        place = f"{INSIDE[Root.MODELS]}/{mount.inside}"
        fields = ("type=bind", _field("source", str(mount.source)), _field("target", place), "readonly")
        words += ["--mount", shlex.quote(",".join(fields))]
    return [*words, "--mount", f'type=volume,source="$name-cache",target={INSIDE[Root.CACHE]}']


def _field(name: str, value: str) -> str:
    """A field of a mount, which is read as CSV."""
    plain = f"{name}={value}"
    if "," not in value and '"' not in value:
        return plain
    return '"' + plain.replace('"', '""') + '"'
