"""The values of a field are told in words that need no knowledge of pydantic."""

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from engine_host.protocol.allowed import refusal
from engine_host.protocol.catalog import PresetStatus


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("it is odd")
    return value


class Inner(BaseModel):
    port: int = Field(1, ge=1, le=65535)
    share: float | None = Field(None, gt=0, le=1)


class Sample(BaseModel):
    inner: Inner = Inner()
    more: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = Field(default_factory=dict)
    yes: bool = True
    word: Literal["a", "b", "c"] = "a"
    status: PresetStatus = PresetStatus.COMPUTED
    name: str = Field("x", min_length=1, max_length=8)
    code: Annotated[str, Field(pattern=r"^\d$")] | None = None
    way: str | None = Field(None, pattern="^(auto|on|off)$")
    even: Annotated[int, AfterValidator(_even)] = 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"inner": {"port": "x"}}, "it takes a whole number from 1 to 65535"),
        ({"inner": {"port": 0}}, "it takes a whole number from 1 to 65535"),
        ({"inner": {"share": 0}}, "it takes a number, above 0 and at most 1"),
        ({"inner": 3}, "it takes keys and values"),
        ({"more": [{"port": "x"}]}, "it takes a whole number from 1 to 65535"),
        ({"by_name": {"x": {"port": "x"}}}, "it takes a whole number from 1 to 65535"),
        ({"more": 3}, 'it takes a list, such as ["a", "b"]'),
        ({"yes": "perhaps"}, "it takes true or false"),
        ({"word": "d"}, "it takes a, b or c"),
        ({"status": "good"}, f"it takes {', '.join([*PresetStatus][:-1])} or {[*PresetStatus][-1]}"),
        ({"name": ""}, "it takes text of 1 to 8 characters"),
        ({"name": 3}, "it takes text of 1 to 8 characters"),
        ({"code": "12"}, r"it takes text that matches ^\d$"),
        ({"way": "in"}, "it takes auto, on or off"),
        ({"even": 3}, "it is odd"),
    ],
)
def test_a_value_is_answered_with_what_its_field_takes(given: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate(given)
    assert refusal(caught.value.errors()[0], Sample) == says
