"""Suggestions for a name that nothing has."""

from engine_host.core.did_you_mean import near_names, same_numbers

PRESETS = ("qwen3.6-27b-q5-24", "qwen3.6-27b-q4-24", "qwen3.6-27b-k8v4-24", "demo-llamacpp", "demo-vllm")


def test_a_name_that_begins_with_all_that_was_typed_is_nearer_than_one_with_another_letter() -> None:
    assert near_names("qwen3.6-27b-q4", PRESETS) == ["qwen3.6-27b-q4-24"]
    assert near_names("demo", PRESETS, 3)[:2] == ["demo-vllm", "demo-llamacpp"]


def test_a_mistyped_name_is_found_whatever_its_letters_are() -> None:
    assert near_names("demo-llamcpp", PRESETS) == ["demo-llamacpp"]
    assert near_names("Demo-VLLM", PRESETS) == ["demo-vllm"]


def test_what_is_like_nothing_has_no_neighbours() -> None:
    assert near_names("xyz", PRESETS, 3) == []
    assert near_names("", PRESETS, 3) == []
    assert near_names("x", ()) == []


def test_short_words_are_near_only_by_a_slip() -> None:
    commands = ("logs", "run", "status", "telemetry", "autostart", "bench", "stop", "top")
    assert near_names("bogus", commands, 3) == []
    assert near_names("nosuch", commands, 3) == []
    assert near_names("foo", ("zoo", "roo", "code")) == []
    for typed, meant in (
        ("lgos", "logs"), ("rnu", "run"), ("stats", "status"), ("telemtry", "telemetry"), ("bnech", "bench"),
        ("atuosart", "autostart"),
    ):  # fmt: skip
        assert near_names(typed, commands)[:1] == [meant], typed


def test_another_number_is_another_thing() -> None:
    assert not same_numbers("rtx-3080", "rtx-5080")
    assert same_numbers("rtx3090", "rtx-3090")
    assert same_numbers("a100", "a100-80gb")
