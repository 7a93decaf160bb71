"""The command line that makes the same launch request."""

import json
import shlex
from collections.abc import Sequence

from engine_host.protocol.plans import EngineKind, LaunchRequest, ServerChoice

# Settings with a flag of their own; every other is given with --set.
_FLAGS = ("context", "streams", "speculation", "kv_cache_dtype")


def equivalent_command(request: LaunchRequest, verb: Sequence[str] = (), *, replaces: bool = False) -> str:
    """The command line that makes the same request; `verb` takes it, `replaces` what runs now."""
    if request.preset is not None:
        words = ["sndr", *(("launch",) if not verb else (*verb, "--preset")), request.preset]
        words += ["--model", request.model] if request.model else []
    else:
        words = ["sndr", *(verb or ("run",)), request.model]
    if request.engine is not EngineKind.AUTO:
        words += ["--engine", request.engine.value]
    if request.server is not ServerChoice.AUTO:
        words += ["--server", request.server.value]
    if request.installation is not None:
        words += ["--installation", request.installation]
    if request.name:
        words += ["--name", request.name]
    given = request.overrides.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    if given.get("kv_type_k") and given.get("kv_type_k") == given.get("kv_type_v"):
        words += ["--kv-type", given.pop("kv_type_k")]
        del given["kv_type_v"]
    for name in _FLAGS:
        if name in given:
            words += [f"--{name.replace('_', '-')}", str(given.pop(name))]
    for argument in given.pop("extra_arguments", ()):
        words += ["--set", f"extra_arguments={argument}"]
    for name, value in given.items():
        words += ["--set", f"{name}={json.dumps(value) if isinstance(value, bool) else value}"]
    chosen = request.patches
    for flag, names in (("--without", chosen.off), ("--with", chosen.on), ("--only", chosen.only or ())):
        for name in names:
            words += [flag, name]
    if chosen.only == ():
        words += ["--without", "all"]
    if request.keep:
        words.append("--keep")
    if replaces:
        words.append("--replace")
    return shlex.join(words)
