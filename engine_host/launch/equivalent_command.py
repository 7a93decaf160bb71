"""The command line that makes the same launch request."""

import json
import shlex
from collections.abc import Sequence

from engine_host.protocol.engine_settings.derived import settings_by_option
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.launch.plans import ALL_ENGINES, EngineKind, LaunchRequest, ServerChoice


def equivalent_command(
    request: LaunchRequest, verb: Sequence[str] = (), *, instead_of: Sequence[str] = ()
) -> str:
    """The command line that makes the same request; `verb` takes it.

    `instead_of` are names of engines that it ends where the request does not name any.
    """
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
    for option, rows in settings_by_option().items():
        values = {given.get(row.name) for row in rows}
        # An option gives all of its settings the same value.
        if len(values) == 1 and None not in values:
            words += [option, str(values.pop())]
            given = {name: value for name, value in given.items() if SETTINGS[name].option != option}
    for name, value in given.items():
        if name == "variables":
            words += [word for one in value for word in ("--env", one)]
            continue
        for one in value if isinstance(value, list) else [value]:
            words += ["--set", f"{name}={json.dumps(one) if isinstance(one, bool) else one}"]
    chosen = request.patches
    for flag, names in (("--without", chosen.off), ("--with", chosen.on), ("--only", chosen.only or ())):
        for name in names:
            words += [flag, name]
    if chosen.only == ():
        words += ["--without", "all"]
    for gpu in request.gpus:
        words += ["--gpu", gpu]
    if request.keep:
        words.append("--keep")
    ended = instead_of if request.instead_of is None else request.instead_of
    if ALL_ENGINES in ended:
        words.append("--replace")
    else:
        words += [word for name in ended for word in ("--instead-of", name)]
    return shlex.join(words)
