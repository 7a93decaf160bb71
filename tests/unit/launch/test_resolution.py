"""Settings by layers: the latest layer wins, in whatever order they are told."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine_host.launch.resolution import Resolution
from engine_host.protocol.launch.plans import Layer

ORDER = list(Layer)


def test_a_later_layer_wins_and_says_why() -> None:
    resolved = Resolution()
    resolved.set("context", 8192, Layer.ENGINE, "default")
    resolved.set("context", 4096, Layer.MODEL, "trained")
    resolved.set("context", 1024, Layer.HARDWARE, "too late")
    assert resolved["context"] == 4096
    assert resolved.layer("context") is Layer.MODEL
    assert [(one.name, one.why) for one in resolved.settings()] == [("context", "trained")]


def test_none_is_a_value_of_its_own_only_when_set() -> None:
    resolved = Resolution()
    resolved.set("gpu_layers", None, Layer.ENGINE)
    resolved.set_given("gpu_layers", 0, Layer.USER)
    resolved.set_given("gpu_layers", None, Layer.OVERRIDE)
    assert resolved["gpu_layers"] == 0
    assert resolved.layer("gpu_layers") is Layer.USER


def test_the_order_is_that_of_the_first_mention() -> None:
    resolved = Resolution()
    for name in ("b", "a", "b", "c"):
        resolved.set(name, 1, Layer.ENGINE)
    assert [setting.name for setting in resolved.settings()] == ["b", "a", "c"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(), st.sampled_from(ORDER)), min_size=1))
def test_the_last_value_of_the_latest_layer_holds(told: list[tuple[str, int, Layer]]) -> None:
    resolved = Resolution()
    for name, value, layer in told:
        resolved.set(name, value, layer)
    for name in {name for name, _, _ in told}:
        mine = [(ORDER.index(layer), value) for other, value, layer in told if other == name]
        latest = max(layer for layer, _ in mine)
        assert resolved.layer(name) is ORDER[latest]
        assert resolved[name] == [value for layer, value in mine if layer == latest][-1]
