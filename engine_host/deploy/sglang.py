"""SGLang's arguments: this program starts no SGLang itself, so nothing else writes them.

The names are those of `python -m sglang.launch_server --help` as SGLang documents them for 0.5.
"""

from engine_host.core.findings.table import finding
from engine_host.deploy.spec import DeploySpec
from engine_host.engines.flag_spelling import ARGPARSE
from engine_host.protocol.engine_settings.row import SGLANG
from engine_host.protocol.engine_settings.table import SETTINGS, flags_of
from engine_host.protocol.launch.plans import Finding

# What is written here beside settings, and `--config`, which reads further arguments from a file.
_OWNED = (
    *("--model", "--model-path", "--served-model-name", "--revision"),
    *("--host", "--port", "--api-key", "--config"),
)
# Means nothing where nothing else is said, and what is handed on as it is.
_SILENT = ("draft_tokens", "extra_arguments", "variables")


def arguments(spec: DeploySpec, model: str) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Return the arguments of a start, and a finding for each setting that has no counterpart there.

    Raises HostError(setting_invalid) for an extra argument that says one of them.
    """
    argv = ["--model-path", model, "--served-model-name", spec.alias]
    if spec.model.revision and spec.model.path is None:
        argv += ["--revision", spec.model.revision]
    lost: list[str] = []
    for name, row in SETTINGS.items():
        value = spec.values.get(name)
        if value is None or name in _SILENT:
            continue
        argument = row.arguments.get(SGLANG)
        words = argument.written(value) if argument is not None else None
        argv += words or ()
        lost += [f"{name}={value}"] if words is None else []
    ARGPARSE.refuse_owned(spec.extra(), {**dict.fromkeys(_OWNED, ""), **flags_of(SGLANG)})
    argv += spec.extra()
    return tuple(argv), tuple(_lost(one) for one in lost)


def _lost(setting: str) -> Finding:
    return finding("render.setting-without-counterpart", setting=setting)
