"""Take keys, and the values of a person's variables, out of a record that may be handed on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from engine_host.core.outside.secret_texts import HIDDEN, redacted
from engine_host.protocol.launch.plans import LaunchPlan

_SHORTEST = 6
_ASSIGNED = re.compile(r"(?<![\w.=/-])([A-Za-z_]\w*)=")
# Options whose next word is a key; `--tokenizer` and `--max-num-batched-tokens` are none.
_SECRET_OPTION = re.compile(r"--?[\w-]*(?:key|token|password|secret|credential)(?:-file)?", re.IGNORECASE)
_SECRET_NAME = re.compile(r"auth|key|token|secret|password|credential|cookie", re.IGNORECASE)
# Variables of engines and their libraries: they say how memory is used, and hold no account of anybody.
_OF_ENGINES = re.compile(
    r"(?:VLLM|CUDA|PYTORCH|TORCH|TRITON|NCCL|GGML|LLAMA|OMP|MKL|HIP|ROCR|TMPDIR)(?:_\w+)?", re.ASCII
)


def without_secrets(content: Any, plan: LaunchPlan) -> Any:
    """Return what JSON can hold with every text of it redacted; `plan` names what a person gave the start."""
    values = (value for _, value in given(plan.model_dump(mode="json")))
    # The longest first: one may be a part of another.
    hidden = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)
    return _walked(content, hidden)


def given(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the variables that a person set for a start, and its options for keys, each with its value.

    `plan` is a launch plan as JSON; parts that have another form than those of this version are passed over.
    """
    for setting in _parts(plan, "settings"):
        if isinstance(setting, Mapping) and setting.get("name") == "variables":
            for word in _parts(setting, "value"):
                name, _, value = str(word).partition("=")
                if not _is_harmless(name):
                    yield name, value
    # What the program itself sets are paths and switches, which the rest of the record is about.
    environment = plan.get("environment")
    if isinstance(environment, Mapping):
        yield from ((name, str(one)) for name, one in environment.items() if _SECRET_NAME.search(name))
    argv = [str(word) for word in _parts(plan, "argv")]
    for option, value in pairwise(argv):
        if _SECRET_OPTION.fullmatch(option):
            yield option, value


def private_variables(text: str) -> set[str]:
    """Return the names of variables in a text of NAME=VALUE whose values are a person's own."""
    # One in small letters alone may be the name of a field, which would be hidden as a whole.
    return {name for name in _ASSIGNED.findall(text) if not _is_harmless(name) and name != name.lower()}


def _parts(of: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = of.get(name)
    return found if isinstance(found, list | tuple) else ()


def _is_harmless(name: str) -> bool:
    return bool(_OF_ENGINES.fullmatch(name)) and not _SECRET_NAME.search(name)


def _walked(value: Any, hidden: list[str]) -> Any:
    if isinstance(value, str):
        for one in hidden:
            value = value.replace(one, HIDDEN)
        return redacted(value)
    if isinstance(value, dict):
        return {name: _walked(inner, hidden) for name, inner in value.items()}
    if isinstance(value, list):
        # Most of a record are numbers.
        return [_walked(inner, hidden) if isinstance(inner, str | dict | list) else inner for inner in value]
    return value
