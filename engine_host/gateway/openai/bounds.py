"""Bounds of what a request sets, those of OpenAI's API, in whichever dialect it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine_host.gateway.error_answers import invalid


@dataclass(frozen=True)
class Bound:
    """The least and the largest value of a field; `largest` is None where there is none."""

    least: float
    largest: float | None = None

    @property
    def schema(self) -> dict[str, float]:
        """The same in words of JSON Schema."""
        most = {} if self.largest is None else {"maximum": self.largest}
        return {"minimum": self.least, **most}

    def holds(self, value: float) -> bool:
        """Return True for a value within."""
        return self.least <= value and (self.largest is None or value <= self.largest)

    def __str__(self) -> str:
        if self.largest is None:
            return f"at least {self.least:g}"
        return f"from {self.least:g} to {self.largest:g}"


_PENALTY = Bound(-2, 2)
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
NO_LIMIT = -1
"""A length as clients of LM Studio and llama.cpp say it; OpenAI's own say nothing."""
BOUNDS: Mapping[str, Bound] = {
    "temperature": Bound(0, 2),
    "top_p": Bound(0, 1),
    "n": Bound(1, 128),
    "top_logprobs": Bound(0),
    "presence_penalty": _PENALTY,
    "frequency_penalty": _PENALTY,
    **dict.fromkeys(LENGTHS, Bound(1)),
}
"""By the names that OpenAI's forms, Anthropic's, llama.cpp's and Ollama's options have in common."""


def check_bounds(values: Mapping[str, object], within: str = "") -> None:
    """Refuse what no model can be asked; raises EndpointError 400. `within` is the object of the values."""
    for name, bound in BOUNDS.items():
        value = values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or bound.holds(value):
            continue
        if name in LENGTHS and value == NO_LIMIT:
            continue
        # Nothing but the prompt with its likelihood, as those who judge models ask for it.
        if not (name == "max_tokens" and value == 0 and values.get("echo") is True):
            raise invalid(f"{within}{name} must be {bound}; it is {value:g}.", param=f"{within}{name}")


def check_stop(stop: object, param: str) -> None:
    """Refuse an empty text as the end of an answer: it comes before the first word. Raises EndpointError.

    Programs with a field for it send what stands there, also where it is empty.
    """
    if stop == "" or (isinstance(stop, list) and "" in stop):
        raise invalid(
            f"{param} holds an empty text, which would end every answer at once. Leave it out.", param=param
        )
