"""Files and texts that several targets share."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine_host.deploy.deployment import HUB, Deployment
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.deploy import RenderedFile, Rendering, RenderTarget
from engine_host.protocol.launch.plans import Finding

SECRETS = "secrets.env"
OVERLAY = "overlay"
DOWNLOAD = "download.sh"
HEALTH_SECONDS = 30
HEALTH_TIMEOUT = 10
HEALTH_RETRIES = 3
STOP_SECONDS = 60
_HF_CACHE = ".cache/huggingface"
_GGUF_FOLDER = ".local/share/sndr/models"
_SCRIPT = """#!/usr/bin/env bash
# {about}
set -euo pipefail

here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
"""
_DOWNLOAD = """{head}{secrets}models={models}

fetch() {{ # address, file, SHA-256 or nothing, bytes or nothing
    local file=$2 token=/dev/null size="" address=$1
    case $file in /*) ;; *) file="$models/$file" ;; esac
    case $address in {hub}/*) address="${{HF_ENDPOINT:-{hub}}}/${{address#{hub}/}}" ;; esac
    if [ -f "$file" ]; then
        echo "$file is there."
        return
    fi
    mkdir -p "$(dirname "$file")"
    # Through a file of its own: a command line can be read by everybody on the machine.
    if [ -n "${{HF_TOKEN:-}}" ]; then
        token=$(mktemp)
        printf 'header = "Authorization: Bearer %s"\\n' "$HF_TOKEN" >"$token"
    fi
    curl --fail --location --continue-at - --config "$token" --output "$file.part" "$address" || {{
        [ "$token" = /dev/null ] || rm -f "$token"
        echo "$address could not be fetched; what is there is kept, and the next call goes on from it." >&2
        exit 1
    }}
    [ "$token" = /dev/null ] || rm -f "$token"
    size=$(wc -c <"$file.part")
    if [ -n "$4" ] && [ "$size" -ne "$4" ]; then
        rm -f "$file.part"
        echo "$file has $size bytes in the place of $4 and was removed." >&2
        exit 1
    fi
    if [ -n "$3" ] && ! echo "$3  $file.part" | sha256sum --check --status; then
        rm -f "$file.part"
        echo "$file is not what it should be (SHA-256) and was removed." >&2
        exit 1
    fi
    [ -n "$3" ] || echo "$file has $size bytes; its SHA-256 is not known, so nothing else was checked." >&2
    mv "$file.part" "$file"
}}

{calls}
"""
_READ_SECRETS = """if [ -f "$here/secrets.env" ]; then
    set -a
    # shellcheck source=/dev/null
    . "$here/secrets.env"
    set +a
fi
"""
_LISTENING = """address=${{SNDR_ADDRESS:-{address}}}
port=${{SNDR_PORT:-{port}}}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${{address#[}} address=${{address%]}} at=$address
case $address in *:*) at="[$address]" ;; esac
"""


def script_head(about: str, *, secrets: bool) -> str:
    """Return the head of a script: it finds its own folder and, where it needs them, reads the secrets."""
    return _SCRIPT.format(about=about) + (_READ_SECRETS if secrets else "")


def listening(deployment: Deployment) -> str:
    """Return the shell lines with the engine's address: `$address`, `$port`, and `$at` before a port."""
    return _LISTENING.format(address=deployment.address, port=deployment.port)


def models_in_home(deployment: Deployment) -> str:
    """Return the models' folder below a person's home: the hub's own cache, or the folder of single files."""
    return _HF_CACHE if not deployment.downloads else _GGUF_FOLDER


def models_variable(deployment: Deployment) -> str:
    """The same for a shell, where a variable can say otherwise."""
    home = f"$HOME/{models_in_home(deployment)}"
    inner = f"${{HF_HOME:-{home}}}" if not deployment.downloads else home
    return f"${{SNDR_MODELS:-{inner}}}"


def rendering(
    target: RenderTarget,
    deployment: Deployment,
    files: Iterable[RenderedFile],
    *,
    check: str,
    start: str,
    stop: str,
    findings: Sequence[Finding] = (),
) -> Rendering:
    """Return a target's own files with those that all share; what has to be fetched is fetched first."""
    fetch = f"./{DOWNLOAD} && " if deployment.downloads else ""
    return Rendering(
        target=target,
        name=deployment.name,
        title=deployment.title,
        files=(*files, *shared_files(deployment)),
        check=check,
        start=f"{fetch}{start}",
        stop=stop,
        findings=(*deployment.findings, *findings),
    )


def shared_files(deployment: Deployment) -> Iterator[RenderedFile]:
    """The secrets to fill in, the download where there is one, and the overlay."""
    yield secrets_file(deployment)
    if deployment.fetched:
        yield download_script(deployment)
    if deployment.overlay is not None:
        for name, text in sorted(deployment.overlay.files.items()):
            yield RenderedFile(name=f"{OVERLAY}/{name}", text=text)


def secrets_file(deployment: Deployment) -> RenderedFile:
    """A file with the names of the secrets, for a person to fill in."""
    lines = ["# Take away the # and add the value; this file is for nobody else's eyes."]
    for secret in deployment.secrets:
        lines += [f"# {secret.variable}: {secret.about}", f"# {secret.variable}="]
    return RenderedFile(
        name=SECRETS, text="\n".join(lines) + "\n", keep=True, about="secrets, to be filled in where needed"
    )


def download_script(deployment: Deployment) -> RenderedFile:
    """A script that fetches what the engine does not fetch itself."""
    calls = "\n".join(
        shlex.join(("fetch", one.address, one.file, one.sha256 or "", str(one.size or "")))
        for one in deployment.fetched
    )
    text = _DOWNLOAD.format(
        hub=HUB,
        head=script_head(
            f"Fetches the model of {deployment.name}; goes on where it was cut off.", secrets=False
        ),
        secrets=_READ_SECRETS,
        models=models_variable(deployment),
        calls=calls,
    )
    return RenderedFile(name=DOWNLOAD, text=text, executable=True, about="fetches the model")


def health_command(deployment: Deployment) -> tuple[str, ...]:
    """A command inside the container that ends with 0 when the engine says that it is well."""
    address = f"http://127.0.0.1:{deployment.port}{deployment.health}"
    if deployment.engine is PresetEngine.LLAMA_CPP:
        return ("curl", "--fail", "--silent", "--max-time", str(HEALTH_TIMEOUT - 1), address)
    program = f"import urllib.request as r; r.urlopen('{address}', timeout={HEALTH_TIMEOUT - 1})"
    return ("python3", "-c", program)


def labels(deployment: Deployment) -> Mapping[str, str]:
    """Return the labels of the container."""
    named = {
        "dev.sndr.deployment": deployment.name,
        "dev.sndr.model": deployment.alias,
        "dev.sndr.engine": f"{deployment.engine.value} {deployment.version}",
    }
    if deployment.overlay is not None:
        named["dev.sndr.patches"] = deployment.overlay.digest
        named["dev.sndr.patch-ids"] = ",".join(deployment.overlay.patches)
    return named


def heading(deployment: Deployment) -> tuple[str, ...]:
    """Return the comment at the top of each file."""
    patches = f" with {len(deployment.overlay.patches)} patches" if deployment.overlay else ""
    return (
        f"{deployment.title}: {deployment.alias} in {deployment.engine.value} {deployment.version}{patches}.",
        "Written by sndr from a preset or a plan; change those and write it again rather than this file.",
    )


def check_body(deployment: Deployment) -> str:
    """The smallest request as JSON in one line."""
    return json.dumps(deployment.check.body, ensure_ascii=False)
