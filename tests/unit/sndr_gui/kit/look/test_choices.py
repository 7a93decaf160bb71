"""The scale: what Qt is given at a start, and what a screen has room for."""

from sndr_gui.kit.look.choices import largest_scale, scale_factor


def test_the_scale_multiplies_what_the_system_has() -> None:
    assert scale_factor(100, {"QT_SCALE_FACTOR": "2"}) is None, "left as it is"
    assert scale_factor(150, {}) == "1.5"
    assert scale_factor(125, {"QT_SCALE_FACTOR": "2"}) == "2.5"
    assert scale_factor(200, {"QT_SCALE_FACTOR": "much"}) == "2"


def test_the_smallest_window_is_whole_at_the_largest_scale_offered() -> None:
    least = (908, 640)
    assert largest_scale(100, (1920, 1280), least) == 200
    assert largest_scale(100, (1366, 768), least) == 110
    # A screen of 2560 x 1440 at 200 % has 1280 x 720 units left.
    assert largest_scale(200, (1280, 720), least) == 200
    assert largest_scale(100, (800, 480), least) == 100
