"""Findings about a rendered start."""

from engine_host.core.findings.text import ERROR, INFO, WARNING, Text

DEPLOY = {
    "render.claims-stay": Text(
        INFO,
        "The claims with the model and the caches stay when it is stopped, and are paid for.",
        fix="Remove them when they are not needed any more; the model is then fetched again.",
        command="kubectl delete persistentvolumeclaim --selector {selector}",
    ),
    "render.copy-model": Text(
        WARNING,
        "The model is on this machine: the pod waits until it is copied into its claim.",
        fix="Put the pod's name for POD.",
    ),
    "render.download-not-checked": Text(
        WARNING,
        "What is fetched is not checked beyond its size: the SHA-256 of {files} is not known to the "
        "catalogue.",
        fix="Compare it with the one that the hub shows for the file.",
    ),
    "render.engine-on-path": Text(
        INFO,
        "The unit runs {name} as it is found on the service's PATH.",
        fix="Where it is elsewhere, add SNDR_ENGINE=PATH to {secrets}: {engine} {version} has to be in it.",
    ),
    "render.gpus-by-cluster": Text(
        INFO,
        "Kubernetes chooses the GPUs: a pod asks for a number and cannot name them by UUID.",
        fix="Name the kind of node with nodeSelector, e.g. nvidia.com/gpu.product.",
    ),
    "render.gpus-by-number": Text(
        INFO,
        "{gpus} taken by number: which ones are there is not known.",
        fix="`nvidia-smi -L` there prints their UUIDs; name them with --gpu.",
    ),
    "render.image-not-tried": Text(INFO, "{image} was not pulled or run by this project."),
    "render.cannot-run": Text(ERROR, "{opening}:[ {sizes}][ {why}]"),
    "render.memory": Text(ERROR, "{opening}:[ {sizes}][ {why}]"),
    "render.memory/shorter": Text(
        ERROR,
        "{opening}[ ({device})]:[ {sizes}][ {why}][ The longest context that fits is {longest:,} tokens a "
        "stream.]",
        fix="Take a shorter context, fewer streams or a smaller KV type.",
    ),
    "render.memory-held": Text(
        WARNING,
        "As things are it would not fit into {device}: {sizes} Others hold {taken:gib} GiB.",
        fix="End what holds the memory before it starts.",
    ),
    "render.memory-unknown": Text(WARNING, "{why}"),
    "render.no-key": Text(
        INFO,
        "It asks nobody for an API key: {why}.",
        fix="Keep it on 127.0.0.1, or put a proxy that asks for a key in front of it.",
    ),
    "render.not-here": Text(INFO, "As things are it would not start on this machine: {problem}"),
    "render.open-to-network": Text(
        WARNING,
        "It listens on {address}: others reach it.",
        fix="Set {variable} in secrets.env.",
    ),
    "render.open-to-network/proxy": Text(
        WARNING,
        "It listens on {address}: others reach it.",
        fix="Put a proxy that asks for a key in front of it.",
    ),
    "render.requests-estimated": Text(
        INFO,
        "The CPUs and the main memory that the pod asks for are an estimate.",
        fix="Look at what it takes with `kubectl top pod`, and change the requests.",
    ),
    "render.revision-open": Text(
        INFO,
        "{repository} is taken as it is on the day of the start: the catalogue knows no revision of it.",
        fix="Look it up and keep it, if the start has to be the same for years.",
    ),
    "render.secrets-object": Text(
        INFO,
        "Keys are read from a secret of the cluster, which is not written here; everything in the cluster "
        "reaches the service, with a key or without one.",
        fix="Make it where one is needed.",
        command="kubectl create secret generic {secret} --from-env-file=secrets.env",
    ),
    "render.setting-without-counterpart": Text(
        WARNING, "SGLang is not told {setting}: it has no argument that means the same."
    ),
}
