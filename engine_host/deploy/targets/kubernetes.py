"""A start as objects of Kubernetes: a deployment with its service, its claims and a map of its patches."""

import base64
import gzip
import io
import math
import shlex
import tarfile
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.deploy.build import GPUS_BY_NUMBER
from engine_host.deploy.deployment import INSIDE, Deployment, Overlay, Root
from engine_host.deploy.targets.container import command, inside
from engine_host.deploy.targets.parts import (
    HEALTH_SECONDS,
    HEALTH_TIMEOUT,
    STOP_SECONDS,
    heading,
    labels,
    secrets_file,
)
from engine_host.deploy.targets.yaml_text import yaml_text
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.deploy import RenderedFile, Rendering, RenderTarget
from engine_host.protocol.launch.plans import Finding

_GIB = 2**30
# etcd takes no object above this.
_LARGEST_MAP = 1 << 20
_ARCHIVE = "overlay.tar.gz"
_ARCHIVE_FOLDER = "/sndr/archive"
_UNKNOWN_CLAIM = 120
# Main memory that is asked for: of the engine itself, and of the process of each GPU.
_BASE_GIB, _GPU_PROCESS_GIB = 4, 4
_CACHE_CLAIM = 20
_LABEL = "app.kubernetes.io/name"
_UNPACK = "import tarfile; tarfile.open('{archive}').extractall('{folder}', filter='data')"
_MARK = ".complete"
_FETCH = """set -eu
token=/dev/null
if [ -n "${{HF_TOKEN:-}}" ]; then
    token=/tmp/token
    (umask 077 && printf 'header = "Authorization: Bearer %s"\\n' "$HF_TOKEN" >"$token")
fi
{calls}
"""
_FETCH_ONE = """if [ ! -f {file} ]; then
    curl --fail --location --continue-at - --config "$token" --create-dirs --output {part} {address}
{check}    mv {part} {file}
fi"""


def render(deployment: Deployment) -> Rendering:
    """The objects in one file. Raises HostError(unsupported) for an overlay that is too large for a map."""
    documents = [
        _claim(deployment, "models", _claim_gib(deployment)),
        _claim(deployment, "cache", _CACHE_CLAIM),
    ]
    if deployment.overlay is not None:
        documents.append(_map(deployment, deployment.overlay))
    documents += [_workload(deployment), _service(deployment)]
    name = f"{deployment.name}.yaml"
    file = RenderedFile(name=name, text=yaml_text(documents, heading(deployment)), about="all objects")
    return Rendering(
        target=RenderTarget.KUBERNETES,
        name=deployment.name,
        title=deployment.title,
        # The overlay is in the map and the download in an init container; the secrets are in no object.
        files=(file, secrets_file(deployment)),
        check=f"kubectl apply --dry-run=server --filename {name}",
        start=f"kubectl apply --filename {name}",
        stop=f"kubectl delete deployment,service,configmap --selector {_LABEL}={deployment.name}",
        findings=(*_elsewhere(deployment), *_findings(deployment)),
    )


def overlay_archive(overlay: Overlay) -> bytes:
    """The overlay as one compressed file; the same overlay gives the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(overlay.files.items()):
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def _metadata(deployment: Deployment, suffix: str = "") -> dict[str, Any]:
    return {"name": f"{deployment.name}{suffix}", "labels": _selector(deployment)}


def _selector(deployment: Deployment) -> dict[str, str]:
    return {_LABEL: deployment.name}


def _claim(deployment: Deployment, name: str, gib: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(deployment, f"-{name}"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{gib}Gi"}}},
    }


def _claim_gib(deployment: Deployment) -> int:
    if deployment.model_size is None:
        return _UNKNOWN_CLAIM
    return max(1, math.ceil(deployment.model_size * 1.25 / _GIB))


def _map(deployment: Deployment, overlay: Overlay) -> dict[str, Any]:
    content = base64.b64encode(overlay_archive(overlay)).decode()
    if len(content) >= _LARGEST_MAP:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("The {count} patches are too large for a ConfigMap.", count=len(overlay.patches)),
            cause=tr(
                "They have {count:,} bytes, and {largest_map:,} is the most.",
                count=len(content),
                largest_map=_LARGEST_MAP,
            ),
            fix=Fix(text="Leave some out with --without, or make an image with the overlay in it."),
            evidence={"bytes": len(content), "most": _LARGEST_MAP},
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        # Named by its content: a change of the patches starts new pods, and an old one keeps its own.
        "metadata": _metadata(deployment, f"-{overlay.digest[:10]}"),
        "binaryData": {_ARCHIVE: content},
    }


def _workload(deployment: Deployment) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "automountServiceAccountToken": False,
        # Kubernetes sets variables like VLLM_PORT for a service of that name, which vLLM would read.
        "enableServiceLinks": False,
    }
    if first := _first(deployment):
        pod["initContainers"] = first
    pod["containers"] = [_engine(deployment)]
    pod["volumes"] = _volumes(deployment)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(deployment),
        "spec": {
            "replicas": 1,
            # A second pod would wait for the GPUs and the claims of the first one for ever.
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": deployment.start_seconds + 600,
            "selector": {"matchLabels": _selector(deployment)},
            "template": {
                "metadata": {"labels": _selector(deployment), "annotations": dict(labels(deployment))},
                "spec": pod,
            },
        },
    }


def _engine(deployment: Deployment) -> dict[str, Any]:
    probe = {"httpGet": {"path": deployment.health, "port": "http"}, "timeoutSeconds": HEALTH_TIMEOUT}
    environment = [
        {"name": name, "value": inside(value).replace("$(", "$$(")}
        for name, value in deployment.environment.items()
    ]
    engine: dict[str, Any] = {
        "name": "engine",
        "image": deployment.image,
        "command": [deployment.entry[0]],
        "args": [word.replace("$(", "$$(") for word in command(deployment)],
        "env": [*environment, *_secret_variables(deployment)],
        "ports": [{"name": "http", "containerPort": deployment.port}],
        "startupProbe": {
            **probe,
            "periodSeconds": 10,
            "failureThreshold": math.ceil(deployment.start_seconds / 10),
        },
        "readinessProbe": {**probe, "periodSeconds": HEALTH_SECONDS, "failureThreshold": 2},
        "livenessProbe": {**probe, "periodSeconds": HEALTH_SECONDS, "failureThreshold": 4},
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": _mounts(deployment),
    }
    engine["resources"] = _resources(deployment)
    return engine


def _resources(deployment: Deployment) -> dict[str, Any]:
    """Return the pod's resource requests; no limit of memory, which would count the weights as read."""
    gpus = deployment.gpus.count
    gib = _GPU_PROCESS_GIB * gpus if gpus else math.ceil((deployment.model_size or 0) * 1.25 / _GIB)
    requests = {"cpu": str(2 + 2 * gpus), "memory": f"{_BASE_GIB + gib}Gi"}
    return {"requests": requests, **({"limits": {"nvidia.com/gpu": gpus}} if gpus else {})}


def _secret_variables(deployment: Deployment) -> list[dict[str, Any]]:
    reference = f"{deployment.name}-secrets"
    return [
        {
            "name": one.variable,
            "valueFrom": {"secretKeyRef": {"name": reference, "key": one.variable, "optional": True}},
        }
        for one in deployment.secrets
    ]


def _first(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the init containers, which run before the engine starts."""
    models = {"name": "models", "mountPath": INSIDE[Root.MODELS]}
    steps: list[dict[str, Any]] = []
    if deployment.local:
        mark = f"{INSIDE[Root.MODELS]}/{_MARK}"
        steps.append(
            _step(
                deployment,
                "await-model",
                ["/bin/sh", "-c", f"until [ -f {mark} ]; do echo waiting for the model; sleep 5; done"],
                [models],
            )
        )
    if deployment.downloads:
        step = _step(deployment, "fetch-model", ["/bin/sh", "-c", _fetch(deployment)], [models])
        step["env"] = [one for one in _secret_variables(deployment) if one["name"] == "HF_TOKEN"]
        steps.append(step)
    if deployment.overlay is not None:
        program = _UNPACK.format(archive=f"{_ARCHIVE_FOLDER}/{_ARCHIVE}", folder=INSIDE[Root.OVERLAY])
        mounts: list[dict[str, Any]] = [
            {"name": "archive", "mountPath": _ARCHIVE_FOLDER, "readOnly": True},
            {"name": "overlay", "mountPath": INSIDE[Root.OVERLAY]},
        ]
        steps.append(_step(deployment, "unpack-overlay", ["python3", "-c", program], mounts))
    return steps


def _step(
    deployment: Deployment, name: str, words: list[str], mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "name": name,
        "image": deployment.image,
        "command": words,
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": mounts,
    }


def _fetch(deployment: Deployment) -> str:
    calls = []
    for one in deployment.downloads:
        file = f"{INSIDE[Root.MODELS]}/{one.file}"
        part = shlex.quote(f"{file}.part")
        wrong = f"{{ rm -f {part}; exit 1; }}"
        check = ""
        if one.size:
            check = f'    [ "$(wc -c <{part})" -eq {one.size} ] || {wrong}\n'
        if one.sha256:
            check += f'    echo "{one.sha256}  "{part} | sha256sum -c --status || {wrong}\n'
        calls.append(
            _FETCH_ONE.format(
                file=shlex.quote(file), part=part, address=shlex.quote(one.address), check=check
            )
        )
    return _FETCH.format(calls="\n".join(calls))


def _mounts(deployment: Deployment) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "cache", "mountPath": INSIDE[Root.CACHE]},
    ]
    models: dict[str, Any] = {"name": "models", "mountPath": INSIDE[Root.MODELS]}
    mounts.append(models if deployment.fetched_by_engine else {**models, "readOnly": True})
    if deployment.overlay is not None:
        mounts.append({"name": "overlay", "mountPath": INSIDE[Root.OVERLAY], "readOnly": True})
        mounts.append({"name": "cache", "mountPath": INSIDE[Root.LEDGER], "subPath": "ledger"})
    return mounts


def _volumes(deployment: Deployment) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{deployment.shm // 2**20}Mi"}},
        {"name": "cache", "persistentVolumeClaim": {"claimName": f"{deployment.name}-cache"}},
        {"name": "models", "persistentVolumeClaim": {"claimName": f"{deployment.name}-models"}},
    ]
    if deployment.overlay is not None:
        map_name = f"{deployment.name}-{deployment.overlay.digest[:10]}"
        volumes.append({"name": "archive", "configMap": {"name": map_name}})
        volumes.append({"name": "overlay", "emptyDir": {}})
    return volumes


def _service(deployment: Deployment) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(deployment),
        "spec": {
            "type": "ClusterIP",
            "selector": _selector(deployment),
            "ports": [{"name": "http", "port": deployment.port, "targetPort": "http"}],
        },
    }


def _elsewhere(deployment: Deployment) -> list[Finding]:
    """Return the findings of every target without the one on GPU numbers, which a cluster assigns itself."""
    return [one for one in deployment.findings if one.id != GPUS_BY_NUMBER]


def _findings(deployment: Deployment) -> list[Finding]:
    name = deployment.name
    findings = [
        finding(
            "render.secrets-object",
            evidence={"variables": [one.variable for one in deployment.secrets]},
            secret=f"{name}-secrets",
        ),
        finding(
            "render.claims-stay",
            evidence={"claims": [f"{name}-models", f"{name}-cache"]},
            selector=f"{_LABEL}={name}",
        ),
        finding("render.requests-estimated", evidence=_resources(deployment)["requests"]),
    ]
    if deployment.gpus.count:
        findings.append(
            finding(
                "render.gpus-by-cluster",
                severity=Severity.INFO if not deployment.gpus.uuids else Severity.WARNING,
                count=deployment.gpus.count,
                uuids=list(deployment.gpus.uuids),
            )
        )
    if deployment.local:
        copies = " ".join(
            f"kubectl cp {shlex.quote(str(one.source))} POD:{INSIDE[Root.MODELS]}/{shlex.quote(one.inside)} "
            "--container await-model &&"
            for one in deployment.mounts
        )
        findings.append(
            finding(
                "render.copy-model",
                command=f"{copies} kubectl exec POD --container await-model -- "
                f"touch {INSIDE[Root.MODELS]}/{_MARK}",
                model=deployment.model,
            )
        )
    return findings
