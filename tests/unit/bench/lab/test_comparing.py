"""Comparisons of two runs: what is judged, what is refused, what is said against them."""

from typing import Any

import pytest

from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.figures import part_result
from engine_host.bench.lab.workloads import WORKLOADS, Part, Workload, workload_hash
from engine_host.client.bench_reports.markdown import comparison_markdown
from engine_host.core.errors import HostError
from engine_host.protocol.bench.comparison import Caution, ComparedFigure, LabComparison, Verdict
from engine_host.protocol.bench.lab import LabEngine, LabMachine, LabRun, Quantity, Sample, WorkloadName
from engine_host.protocol.errors import Reason

PART = Part("story", "Tell.", max_tokens=11, warm=0, measured=7)
OF_TIMES = {Quantity.DECODE, Quantity.AGGREGATE, Quantity.ITL, Quantity.TPOT, Quantity.TOTAL, Quantity.TTFT}


def made(name: str, each: list[float], **changed: Any) -> LabRun:
    """Return a run in which a token of each round took so many seconds."""
    samples = tuple(
        Sample(
            part="story",
            number=turn,
            round=turn,
            warm=False,
            salt="s",
            started=float(turn),
            first=step,
            last=11 * step,
            total=11 * step,
            arrivals=tuple(step * number for number in range(1, 12)),
            prompt_tokens=30,
            tokens=11,
            text="words",
            fault=changed.get("fault", ""),
        )
        for turn, step in enumerate(each)
    )
    plain: dict[str, Any] = {
        "id": name,
        "workload": WorkloadName.QUICK,
        "workload_hash": "h",
        "started_at": 1.0,
        "seed": 7,
        "complete": True,
        "engine": LabEngine(address="s", id="e", model="m", settings={"streams": "1"}, patches=("p1",)),
        "machine": LabMachine(program="1", python="3", system="s", gpus=("G",), driver="1"),
        "parts": (part_result(PART, samples),),
        "samples": samples,
    }
    changed.pop("fault", None)
    return LabRun(**{**plain, **changed})


def of(found: LabComparison, quantity: Quantity) -> ComparedFigure:
    return next(one for one in found.figures if one.quantity is quantity)


SLOW = [0.10, 0.13, 0.12, 0.15, 0.11, 0.14, 0.12]
FAST = [step / 2 for step in SLOW]


def test_runs_in_turns_are_judged_by_their_rounds() -> None:
    found = compared(made("a", SLOW, turns_with="b"), made("b", FAST, turns_with="a"))
    assert found.in_turns
    for quantity in OF_TIMES:
        one = of(found, quantity)
        assert (one.verdict, one.rounds) == (Verdict.FASTER, 7)
        assert one.change == pytest.approx(1.0)
    prefill = of(found, Quantity.PREFILL)
    assert (prefill.verdict, prefill.change) == (None, None)
    assert "n/a in A: a prompt of 30 tokens" in prefill.words
    assert found.doubts == ()
    assert found.a.samples == ()


def test_runs_apart_say_so_and_need_no_pairs() -> None:
    found = compared(made("a", FAST), made("b", SLOW[:5]))
    assert [doubt.caution for doubt in found.doubts] == [Caution.ONE_AFTER_THE_OTHER]
    assert of(found, Quantity.DECODE).verdict is Verdict.SLOWER
    few = compared(made("a", FAST[:2]), made("b", SLOW[:2]))
    assert of(few, Quantity.TOTAL).verdict is Verdict.CANNOT_TELL
    assert "3 more rounds" in of(few, Quantity.TOTAL).words


def test_one_sided_turns_are_none() -> None:
    assert not compared(made("a", SLOW, turns_with="b"), made("b", SLOW)).in_turns


def test_a_struck_figure_is_not_judged() -> None:
    found = compared(made("a", SLOW), made("b", SLOW, fault="it is empty"))
    assert all(one.verdict is None for one in found.figures)
    assert "struck in B: 7 of 7 answers: it is empty" in of(found, Quantity.DECODE).words
    assert "~~" in "\n".join(comparison_markdown(found))


def test_what_differs_is_named_and_what_matters_is_a_doubt() -> None:
    other = LabEngine(
        address="s", id="f", model="n", model_path="/n", settings={"streams": "2", "x": "1"}, patches=("p2",)
    )
    machine = LabMachine(program="1", python="3", system="s", gpus=("H",), driver="2")
    found = compared(
        made("a", SLOW),
        made("b", SLOW, engine=other, machine=machine, complete=False, ended_by="cancelled"),
    )
    assert {(one.name, one.a, one.b) for one in found.differing} == {
        ("model", "m", "/n"),
        ("GPUs", "G", "H"),
        ("GPU driver", "1", "2"),
        ("streams", "1", "2"),
        ("x", "", "1"),
        ("patch p1", "on", ""),
        ("patch p2", "", "on"),
    }
    assert {doubt.caution for doubt in found.doubts} == {
        Caution.OTHER_MODEL,
        Caution.OTHER_MACHINE,
        Caution.OTHER_DRIVER,
        Caution.PARTIAL,
        Caution.ONE_AFTER_THE_OTHER,
    }


def test_of_an_address_no_setting_is_called_different() -> None:
    found = compared(made("a", SLOW), made("b", SLOW, engine=LabEngine(address="http://x", model="m")))
    assert found.differing == ()
    assert Caution.PLAN_UNKNOWN in {doubt.caution for doubt in found.doubts}


@pytest.mark.parametrize(
    "changed", [{"id": "a"}, {"workload": WorkloadName.PREFILL}, {"workload_hash": "another"}]
)
def test_runs_that_asked_different_things_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(HostError) as raised:
        compared(made("a", SLOW), made("b", SLOW).model_copy(update=changed))
    assert raised.value.reason is Reason.CONFLICT


def test_what_is_asked_makes_the_hash_and_not_how_often() -> None:
    assert len({workload_hash(one) for one in WORKLOADS.values()}) == len(WORKLOADS)

    def hashed(**changed: Any) -> str:
        fields: dict[str, Any] = {"question": "q", "max_tokens": 9, "warm": 1, "measured": 2, **changed}
        return workload_hash(Workload(WorkloadName.QUICK, (Part("p", **fields),)))

    assert hashed() == hashed(measured=9, warm=0)
    assert len({hashed(), hashed(question="r"), hashed(max_tokens=8), hashed(streams=2)}) == 4


def test_what_a_server_says_of_itself_is_no_markup_of_a_comparison() -> None:
    hostile = LabEngine(address="s", id="f", model="<b>|m`\x1b[31m", settings={"<i>|": "![x](http://x)"})
    text = "\n".join(comparison_markdown(compared(made("a", SLOW), made("b", SLOW, engine=hostile))))
    assert "<b>" not in text
    assert "<i>" not in text
    assert "![x]" not in text


def test_a_file_of_countless_rounds_is_compared_by_those_that_can_be_asked() -> None:
    found = compared(made("a", SLOW), made("b", SLOW * 400))
    assert of(found, Quantity.TPOT).rounds == 7
    turns = compared(made("a", SLOW * 400, turns_with="b"), made("b", FAST * 400, turns_with="a"))
    assert of(turns, Quantity.TPOT).rounds == 1000


def test_the_same_weights_elsewhere_are_the_same_model() -> None:
    home = LabEngine(address="s", id="e", model="m", model_path="/opt/a/m-q8.gguf")
    runs = [
        made(name, SLOW, engine=home.model_copy(update={"model_path": path}))
        for name, path in (
            ("a", "/opt/a/m-q8.gguf"),
            ("b", "/srv/models/m-q8.gguf"),
            ("c", "/srv/models/m-q4.gguf"),
        )
    ]
    cautions = [{one.caution for one in compared(runs[0], other).doubts} for other in runs[1:]]
    assert [Caution.OTHER_MODEL in one for one in cautions] == [False, True]
