"""`sndr patches` against a host of canned answers: what is asked, what is said, and the exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, engines

Sndr = Callable[..., tuple[int, str, str]]

PATCH: dict[str, Any] = {
    "id": "one",
    "title": "Mends one",
    "family": "kv.cache",
    "kinds": ["text"],
    "problem": "It breaks.",
    "upstream": ["https://example.org/1"],
    "applies_to": {"vllm": ">=0.26"},
    "risk": "low",
    "switch": "on",
    "switched_by": "default",
    "evidence": [
        {"metric": "time", "before": 2.0, "unit": "s", "machine": "a box", "pin": "0.32.0"},
        {"metric": "cache", "before": 1775210, "after": 2085648.5, "unit": "tokens"},
    ],
    "retire_when": "It is merged.",
}
OTHER = {**PATCH, "id": "two", "family": "kvm", "switch": "off"}
PROBLEM = {"reason": "patch_invalid", "message": "/p/three/patch.toml is wrong at id."}
PAGE = {"seq": 0, "patches": [PATCH, OTHER], "faults": [{"folder": "/p/three", "problem": PROBLEM}]}
APPLIES = {"patch": "one", "verdict": "applies", "needed_by": ["two"]}
DETAIL = {
    "seq": 0,
    "patch": PATCH,
    "vllm": "0.32.0",
    "operations": [{"kind": "text", "target": "vllm.a", "vllm": "<0.33", "diff": "-old\n+new"}],
    "check": APPLIES,
}
PLANNED = {
    "digest": "d",
    "chosen": ["one"],
    "left_out": [{"patch": "two", "reason": "wrong_gpu", "detail": "no GPU"}],
}


def test_list_shows_the_catalogue_and_what_cannot_be_used(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/patches"] = (200, PAGE)
    code, out, _ = sndr("patches", "list")
    assert code == 0
    assert out.splitlines()[0].split()[:3] == ["patch", "switch", "family"]
    assert "one" in out
    assert "two" in out
    assert "Not usable: /p/three/patch.toml is wrong at id." in out


def test_a_family_is_a_whole_word(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/patches"] = (200, PAGE)
    _, out, _ = sndr("patches", "list", "--family", "kv", "--json")
    assert [patch["id"] for patch in json.loads(out)["patches"]] == ["one"]


def test_show_has_the_diff_the_evidence_and_the_verdict(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/patches/one"] = (200, DETAIL)
    code, out, _ = sndr("patches", "show", "one", "--vllm", "0.32.0-cpu")
    assert code == 0
    assert host.received[-1][0] == "GET /v1/patches/one?vllm=0.32.0-cpu"
    for said in (
        "text vllm.a (vLLM <0.33)",
        "-old\n+new",
        "measured: time: 2 s → not measured (a box, vLLM 0.32.0)",
        "measured: cache: 1,775,210 tokens → 2,085,648.5 tokens\n",
        "retire: It is merged.",
        "In vLLM 0.32.0: applies.",
        "Needed by: two.",
    ):
        assert said in out


def test_a_path_is_meant_from_where_the_person_stands(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page = {"seq": 0, "vllm": "0.32.0", "source": "a wheel", "checks": [APPLIES]}
    host.answers["GET /v1/patches"] = (200, {**PAGE, "faults": []})
    host.answers["GET /v1/patches/check"] = (200, page)
    for given, received in (
        ("./venv", tmp_path / "venv"),
        ("a.whl", tmp_path / "a.whl"),
        ("0.32.0", "0.32.0"),
    ):
        assert sndr("patches", "check", "--vllm", given)[0] == 0
        assert unquote(host.received[-1][0]) == f"GET /v1/patches/check?vllm={received}"


def test_a_patch_that_is_not_there_is_said_as_the_host_says_it(host: FakeHost, sndr: Sndr) -> None:
    problem = {"reason": "patch_unknown", "message": "There is no patch or family 'on'.", "cause": "one?"}
    host.answers["GET /v1/patches/on"] = (404, {"error": problem})
    code, out, err = sndr("patches", "show", "on")
    assert code != 0
    assert out == ""
    assert "There is no patch or family 'on'." in err


DRIFT = {
    "patch": "two",
    "verdict": "anchor_drift",
    "reason": "anchor_missing",
    "operations": [
        {
            "kind": "text",
            "target": "vllm.b",
            "verdict": "anchor_drift",
            "detail": "the anchor is there 0 times, 1 wanted",
            "nearest": "-was\n+is",
        }
    ],
}


@pytest.mark.parametrize(
    ("second", "expected"), [(DRIFT, 5), ({"patch": "two", "verdict": "out_of_range"}, 0)]
)
def test_check_ends_with_5_when_one_has_drifted(
    host: FakeHost, sndr: Sndr, second: dict[str, Any], expected: int
) -> None:
    page = {"seq": 0, "vllm": "0.32.0", "source": "a wheel", "checks": [APPLIES, second]}
    host.answers["GET /v1/patches"] = (200, {**PAGE, "faults": []})
    host.answers["GET /v1/patches/check"] = (200, page)
    code, out, _ = sndr("patches", "check")
    assert code == expected
    assert "vLLM 0.32.0 (a wheel)" in out
    assert ("two: vllm.b: the anchor is there 0 times, 1 wanted\n  -was\n  +is" in out) is (expected == 5)


def test_a_folder_that_cannot_be_used_is_told_by_check_too(host: FakeHost, sndr: Sndr) -> None:
    page = {"seq": 0, "vllm": "0.32.0", "source": "a wheel", "checks": [APPLIES]}
    host.answers["GET /v1/patches"] = (200, PAGE)
    host.answers["GET /v1/patches/check"] = (200, page)
    code, out, _ = sndr("patches", "check")
    assert code == 5
    assert "Not usable: /p/three/patch.toml is wrong at id." in out


def test_a_family_that_is_not_there_is_named(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/patches"] = (200, PAGE)
    code, out, err = sndr("patches", "list", "--family", "nosuch")
    assert (code, out) == (4, "")
    assert "kv.cache, kvm" in err


def test_plan_asks_for_vllm_and_says_why_each_other_is_out(host: FakeHost, sndr: Sndr) -> None:
    page = {"seq": 0, "vllm": "0.32.0", "source": "a venv", "checks": [{**DRIFT, "patch": "one"}]}
    host.answers["GET /v1/patches/check"] = (200, page)
    host.answers["POST /v1/patches/plan"] = (200, PLANNED)
    code, out, _ = sndr("patches", "plan", "demo", "--without", "kv")
    assert code == 0
    sent = host.received[-1][2]
    assert (sent["engine"], sent["patches"]["off"]) == ("vllm", ["kv"])
    assert "1 patch, in this order:\n  one  (left out there: anchor drift)" in out
    assert "wrong_gpu" in out


def test_plan_of_a_preset_needs_no_model(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/patches/plan-preset"] = (200, PLANNED)
    code, out, _ = sndr("patches", "plan", "--preset", "p", "--hardware", "rtx-3090", "--count", "2")
    assert code == 0
    assert "1 patch, in this order:" in out
    received = host.received[-1][2]
    assert (received["preset"], received["hardware"], received["count"]) == ("p", "rtx-3090", 2)
    for words in ((), ("model", "--preset", "p"), ("model", "--count", "2")):
        assert sndr("patches", "plan", *words)[0] == 2


@pytest.mark.parametrize(
    ("patch", "said"),
    [("one", "It would be applied."), ("two", "It would be left out: wrong_gpu (no GPU).")],
)
def test_explain(host: FakeHost, sndr: Sndr, patch: str, said: str) -> None:
    host.answers["POST /v1/patches/plan"] = (200, PLANNED)
    host.answers[f"GET /v1/patches/{patch}"] = (200, {**DETAIL, "patch": {**PATCH, "id": patch}})
    code, out, _ = sndr("patches", "explain", patch, "demo")
    assert code == 0
    assert said in out


def test_switch_sends_the_names_and_says_what_is_off(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/patches/switch"] = (200, PAGE)
    code, out, _ = sndr("patches", "switch", "off", "two", "kv")
    assert code == 0
    assert host.received[-1][2] == {"names": ["two", "kv"], "to": "off"}
    assert out == "Off now: two. This holds from the next start.\n"
    assert sndr("patches", "switch", "sideways", "two")[0] == 2
    assert sndr("patches", "switch", "off")[0] == 2


def process(**probe: Any) -> dict[str, Any]:
    result = {"patch": "one", "outcome": "applied", "ms": 1.25}
    if probe:
        result["probe"] = {"at": 1.0, **probe}
    waiting = {"patch": "two", "outcome": "pending"}
    return {"pid": 7, "role": "Worker", "rank": 1, "since": 1.0, "results": [result, waiting]}


def live(*processes: dict[str, Any]) -> tuple[int, Any]:
    words = "Worker 1 1 applied" if processes else ""
    found = {"seq": 0, "engine": "engine-1", "planned": None, "processes": processes, "summary": words}
    return 200, found


def test_status_is_of_the_newest_engine(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["GET /v1/engines/engine-1/patches"] = live(process())
    code, out, _ = sndr("patches", "status")
    assert code == 0
    assert "Worker 1 1 applied" in out
    assert "Worker 1 7" in out
    assert "two" not in out


def test_status_of_an_engine_that_said_nothing_and_without_an_engine(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines/engine-1/patches"] = live()
    assert (
        "No process of this engine has said anything of patches; only vLLM has any."
        in sndr("patches", "status", "engine-1")[1]
    )
    host.answers["GET /v1/engines"] = engines()
    code, _, err = sndr("patches", "status")
    assert code == 4
    assert "No engine runs." in err


@pytest.mark.parametrize(
    ("said", "expected", "words"),
    [
        ({"live": True, "hits": 12}, 0, "live, ran 12 times"),
        ({"live": True}, 0, "live"),
        ({"live": False, "why": "another code has taken its place"}, 5, "not live: another code has"),
    ],
)
def test_probe_ends_with_5_when_an_applied_patch_is_not_live(
    host: FakeHost, sndr: Sndr, said: dict[str, Any], expected: int, words: str
) -> None:
    host.answers["POST /v1/engines/engine-1/patches/probe"] = live(process(**said))
    code, out, _ = sndr("patches", "probe", "engine-1")
    assert code == expected
    assert words in out


def test_without_starts_again(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/engines/engine-1/patches/one/start-without"] = (202, {**ENGINE, "id": "engine-2"})
    code, out, _ = sndr("patches", "without", "one", "engine-1")
    assert code == 0
    assert "demo starts again without one (engine-2)." in out


@pytest.mark.parametrize("words", [(), ("--check", "starts", "--", "true")])
def test_bisect_wants_one_way_to_judge(host: FakeHost, sndr: Sndr, words: tuple[str, ...]) -> None:
    code, _, err = sndr("patches", "bisect", "demo", *words)
    assert code == 2
    assert "either --check or a command" in err
    assert host.received == []


def test_bisect_of_a_preset_has_its_command_after_the_options(host: FakeHost, sndr: Sndr) -> None:
    verdict = {"verdict": "no_failure", "sentence": "Nothing failed."}
    job = {
        "id": "job-1",
        "kind": "patch.bisect",
        "title": "Bisect",
        "touches": "x",
        "state": "done",
        "created_at": 1.0,
        "result": verdict,
    }
    host.answers["POST /v1/patches/bisect"] = (202, job)
    assert sndr("patches", "bisect", "--preset", "p", "--", "curl", "-f")[0] == 0
    body = next(body for name, _, body in host.received if name == "POST /v1/patches/bisect")
    assert body["launch"]["preset"] == "p"
    assert not body["launch"].get("model")
    assert body["check"]["command"] == ["curl", "-f"]
    assert sndr("patches", "bisect", "--check", "starts")[0] == 2
