"""`sndr top`: nothing is shown that was not measured, and no name steers the terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from engine_host.cli.top.reading import Reading
from engine_host.cli.top.screen import screen
from engine_host.client.ends import left_ended
from engine_host.core.errors import HostError
from engine_host.protocol.engines import EngineState, Readings, Request, RequestState
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu, GpuHolder, PcieLink, ThrottleReason
from tests.plan_samples import engine_of, plain_plan
from tests.views.samples.host import host as host_info

GIB = 1 << 30
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]me[/]\n\u202eevil" + "x" * 500


def shown(reading: Reading, width: int = 240) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=True, color_system=None, markup=False, highlight=False
    )
    console.print(screen(reading, width))
    return out.getvalue()


def reading(**changes: Any) -> Reading:
    facts: dict[str, Any] = {
        "at": 100.0,
        "host": host_info(),
        "machine": {},
        "engines": (),
        "requests": (),
    }
    return Reading(**facts | changes)


def test_without_anything_it_says_what_would_help() -> None:
    text = shown(reading())
    assert "sndr run --demo" in text
    assert "GPU: none" in text
    assert "CPU - of" in text, "not measured is no 0"


def test_gpus_engines_and_requests() -> None:
    gpu = Gpu(
        index=0,
        uuid="GPU-x",
        name="RTX 3090",
        memory_total=24 * GIB,
        memory_used=21 * GIB,
        utilization=0.97,
        temperature=83,
        slowdown_temperature=90,
        power=349.0,
        power_limit=350.0,
        clock=1395,
        throttled_by=(ThrottleReason.POWER_CAP, ThrottleReason.IDLE),
        pcie=PcieLink(generation=3, width=8, most_generation=4, most_width=16),
        holders=(
            GpuHolder(pid=7, name="python", memory=20 * GIB),
            GpuHolder(pid=8, name="Xorg", memory=None),
        ),
    )
    runs = engine_of(
        plain_plan(),
        id="e1",
        name="qwen",
        pid=7,
        readings=Readings(at=99, slots_busy=1, slots_total=4, decode_rate=42.06),
    )
    asked = Request(
        id="r1", engine="e1", model="qwen", route="chat", state=RequestState.PREFILL, created_at=88.0,
        prefill_tokens=500, prefill_of=2000, client_name="Zed 1.2",
    )  # fmt: skip
    text = shown(
        reading(
            host=host_info(gpus=(gpu,)), engines=(runs,), requests=(asked,) * 14, machine={"cpu.share": 0.5}
        )
    )
    for words in (
        "97 %",
        "21.0 GiB of 24.0 GiB",
        "83 of 90 °C",
        "349 of 350 W",
        "1,395 MHz",
        "power limit",
        "3 x8 of 4 x16",
    ):
        assert words in text, words
    assert "qwen 20.0 GiB, Xorg" in text, "an engine of ours by its name, others by theirs"
    assert "idle" not in text
    for words in ("1 of 4", "42.1", "Zed 1.2", "prefill 25 %", "12 s", "and 2 more", "CPU 50 %"):
        assert words in text, words


@pytest.mark.parametrize("width", [40, 80, 100, 130])
def test_a_narrow_terminal_has_whole_words(width: int) -> None:
    now = Readings(at=99, slots_busy=1, slots_total=4, decode_rate=42.06, kv_usage=0.5, memory=21 * GIB)
    runs = engine_of(plain_plan(), id="e1", name="a-model-with-a-long-name-of-its-own", pid=7, readings=now)
    lines = shown(reading(engines=(runs,)), width).splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    heading = next(line for line in lines if line.startswith("engine"))
    assert "…" not in heading
    assert "state" in heading
    assert "ready" in next(line for line in lines if line.startswith("a-model"))
    assert ("decode/s" in heading) == (width >= 80)


def test_names_from_elsewhere_steer_nothing() -> None:
    gpu = Gpu(
        index=0,
        uuid="x",
        name=HOSTILE,
        memory_total=1,
        memory_used=0,
        holders=(GpuHolder(pid=1, name=HOSTILE),),
    )
    asked = Request(
        id=HOSTILE,
        engine="",
        model=HOSTILE,
        route="chat",
        state=RequestState.WAITING,
        created_at=1.0,
        client=HOSTILE,
    )
    text = shown(
        reading(
            host=host_info(gpus=(gpu,), hostname=HOSTILE),
            requests=(asked,),
            engines=(engine_of(plain_plan(), name=HOSTILE),),
        )
    )
    assert "\x1b]0;" not in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "[bold red]" in text, "markup is text"


def test_who_watches_is_told_what_ended_an_engine() -> None:
    said = HostError(Reason.INTERNAL, "Somebody ended it with SIGKILL while it served.").problem
    gone = engine_of(
        plain_plan(), id="engine-1", name="qwen", state=EngineState.FAILED, ready_at=10.0, ended_at=97.0
    ).model_copy(update={"problem": said})
    for width in (80, 120):
        text = shown(reading(ended=(gone,)), width)
        assert "qwen died while it served 3.0 s ago: Somebody ended it with SIGKILL" in " ".join(text.split())
        assert "sndr autopsy engine-1" in text
        assert "No engine runs" not in text
        assert max(map(len, text.splitlines())) <= width


def test_one_that_was_started_again_has_not_ended() -> None:
    first = engine_of(plain_plan(), id="1", name="a", state=EngineState.FAILED, ended_at=5.0)
    again = engine_of(plain_plan(), id="2", name="a", state=EngineState.READY)
    again = again.model_copy(update={"created_at": first.created_at + 1})
    assert left_ended((first,), now=6.0, refused_for=60.0) == [first]
    assert left_ended((first, again), now=6.0, refused_for=60.0) == []


def test_a_refused_start_is_news_for_a_minute_and_a_death_for_longer() -> None:
    refused = engine_of(plain_plan(), id="1", name="a", state=EngineState.FAILED, ended_at=5.0)
    died = engine_of(plain_plan(), id="2", name="b", state=EngineState.FAILED, ready_at=3.0, ended_at=5.0)
    assert left_ended((refused, died), now=60.0, refused_for=60.0) == [refused, died]
    assert left_ended((refused, died), now=66.0, refused_for=60.0) == [died]
