"""The variables that a person or a preset gives an engine, and those that are none of theirs to give."""

from collections.abc import Mapping, Sequence

from engine_host.core.errors import HostError
from engine_host.protocol.engine_settings.variables import variables_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

# By name or beginning: what says the same. What the host gives itself, and what it reads an engine by.
_OF_THE_HOST = {
    "CUDA_VISIBLE_DEVICES": "Name the GPUs with --gpu.",
    "CUDA_DEVICE_ORDER": "Name the GPUs with --gpu.",
    "TMPDIR": "An engine's temporary files go with its socket.",
    "SNDR_": "These are this program's own.",
}


def given_variables(words: Sequence[str], own: Mapping[str, str], owned: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a start that was given these words.

    `own` are variables that the host sets itself, `owned` others that are the adapter's, by name or beginning
    (ending in `_`), each with what says the same. Raises HostError(setting_invalid) for one of these.
    """
    given = variables_of(words)
    reserved = {**dict.fromkeys(own, "The host sets it."), **_OF_THE_HOST, **owned}
    for name in given:
        instead = reserved.get(name) or _beginning(name, reserved)
        if instead is not None:
            raise HostError(
                Reason.SETTING_INVALID,
                tr("The variable {name} is not for a start to set.", name=name),
                cause="The host, its plan or a setting owns it.",
                fix=instead,
                evidence={"setting": "variables", "variable": name},
            )
    return given


def _beginning(name: str, reserved: Mapping[str, str]) -> str | None:
    """Return what says the same as a variable with a beginning that is reserved."""
    return next((said for key, said in reserved.items() if key.endswith("_") and name.startswith(key)), None)
