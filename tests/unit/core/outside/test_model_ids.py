"""Ids that every client can carry, and the suggestion for one that some cannot."""

import pytest

from engine_host.core.errors import HostError
from engine_host.core.outside.model_ids import check_id
from engine_host.protocol.endpoint.model_ids import LONGEST_ID, suggested_id
from engine_host.protocol.errors import Reason


@pytest.mark.parametrize("name", ["coder", "qwen3.5-27b", "A_b.c-1", "x" * LONGEST_ID])
def test_ids_that_can_be_used(name: str) -> None:
    check_id(name)


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("qwen/coder:7b", "qwen-coder-7b"),
        ("my coder", "my-coder"),
        (".hidden", "hidden"),
        ("line\nbreak", "line-break"),
        ("\x1b[31mred", "31mred"),
        ("größe", "groe"),
        ("x" * 101, "x" * 100),
        ("..", ""),
        ("", ""),
        ("\ud800", ""),
        ("\u202e", ""),
    ],
)
def test_others_are_refused_with_one_to_take_instead(name: str, better: str) -> None:
    with pytest.raises(HostError) as refused:
        check_id(name)
    assert refused.value.reason is Reason.SETTING_INVALID
    assert suggested_id(name) == better
    assert better in str(refused.value.problem.fix)
    if better:
        check_id(better)
