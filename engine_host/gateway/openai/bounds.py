"""Bounds of what a request sets, those of OpenAI's API, in whichever dialect it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine_host.core.bounds.cut_text import cut_text
from engine_host.gateway.error_answers import invalid, wrong_type


@dataclass(frozen=True)
class Bound:
    """The least and the largest value of a field; `largest` is None where there is none."""

    least: int
    largest: int | None = None

    @property
    def schema(self) -> dict[str, int]:
        """The same in words of JSON Schema."""
        most = {} if self.largest is None else {"maximum": self.largest}
        return {"minimum": self.least, **most}

    def holds(self, value: float) -> bool:
        """Return True for a value within."""
        return self.least <= value and (self.largest is None or value <= self.largest)

    def __str__(self) -> str:
        if self.largest is None:
            return f"at least {self.least}"
        return f"from {self.least} to {self.largest}"


_PENALTY = Bound(-2, 2)
_LONGEST_SHOWN = 40
_BIAS = Bound(-100, 100)
_LARGEST = (1 << 31) - 1
"""What llama.cpp reads as a number of 32 bits: it took a larger one for one below 0."""
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
    "min_p": Bound(0, 1),
    # vLLM's engine answers 500 to a larger one.
    "top_k": Bound(-1, _LARGEST),
    "seed": Bound(-(1 << 63), (1 << 63) - 1),
    **dict.fromkeys(LENGTHS, Bound(1, _LARGEST)),
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
            shown = cut_text(str(value), _LONGEST_SHOWN)
            raise invalid(f"{within}{name} must be {bound}; it is {shown}.", param=f"{within}{name}")


def check_bias(biases: object) -> None:
    """Refuse what moves no token's likelihood, or moves one too far; raises EndpointError 400.

    llama.cpp leaves out a bias that is no number, and vLLM cuts one at its bounds; pairs, words for numbers
    of tokens and `false` for never are llama.cpp's.
    """
    pairs = list(biases.items()) if isinstance(biases, dict) else biases if isinstance(biases, list) else ()
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise wrong_type("logit_bias", "an object of tokens and numbers")
        token, bias = pair
        if bias is False:
            continue
        if not isinstance(bias, int | float) or isinstance(bias, bool) or not _BIAS.holds(bias):
            raise invalid(
                f"logit_bias must be numbers {_BIAS}; that of "
                f"{cut_text(str(token), _LONGEST_SHOWN)} is {cut_text(str(bias), _LONGEST_SHOWN)}.",
                param="logit_bias",
            )


def check_stop(stop: object, param: str) -> None:
    """Refuse what is no text, or an empty one, as the end of an answer: that comes before the first word.

    Raises EndpointError 400.
    Programs with a field for it send what stands there, also where it is empty.
    """
    if isinstance(stop, list) and not all(isinstance(one, str) for one in stop):
        raise wrong_type(param, "a text or a list of texts")
    if stop == "" or (isinstance(stop, list) and "" in stop):
        raise invalid(
            f"{param} holds an empty text, which would end every answer at once. Leave it out.", param=param
        )
