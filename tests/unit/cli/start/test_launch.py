"""`sndr launch`, `sndr presets verdicts` and `verify`, and `sndr fit --preset`, against canned answers."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from engine_host.cli.presets.verdicts import word_of
from engine_host.core.findings.presets import PRESETS
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.start.test_run import HOST, OTHER, READY, was_started
from tests.unit.cli.test_commands import ENGINE, PLAN, engines

Sndr = Callable[..., tuple[int, str, str]]
REPORT: dict[str, Any] = {
    "model": "m/q4",
    "preset": "p",
    "engine": "llama.cpp",
    "kv": "f16",
    "context": 2048,
    "streams": 2,
    "tensor_parallel": 1,
    "verdict": "fits",
    "devices": [
        {
            "name": "RTX 3090 #0",
            "total": 24 << 30,
            "taken": 0,
            "room": 24 << 30,
            "parts": [],
            "needed": 19 << 30,
            "free_after": 5 << 30,
        }
    ],
}
FINDING = {
    "id": "vram_held",
    "severity": "error",
    "reason": "out_of_memory",
    "message": "python3 (pid 7) holds 8.0 GiB.",
    "fix": {"text": "End it.", "command": "kill 7"},
}
FILES = {
    "id": "weights.missing",
    "severity": "error",
    "message": "It is not here.",
    "fix": {"text": "Fetch it.", "command": "hf download it"},
}
PLANNED = {
    **PLAN,
    "preset": "p",
    "settings": [
        {"name": "streams", "value": 2, "layer": "profile", "why": "profiles/latency.yaml, line 8"},
        {"name": "gpu_layers", "value": None, "layer": "engine default"},
        {"name": "embeddings", "value": False, "layer": "model"},
    ],
    "changes": ["preset: q → p", "streams: 8 → 2"],
    "command": "sndr launch p",
}
VERDICTS = {
    "hardware": "2 × RTX 3090",
    "verdicts": [
        {
            "preset": "good",
            "verdict": "fits",
            "needed": 19 << 30,
            "room": 22 << 30,
            "largest_context": 262144,
            "decode": 75.6,
            "model": "m",
        },
        {"preset": "absent", "verdict": "tight", "why": "Almost.", "missing": [FILES]},
        {"preset": "never", "verdict": "cannot_run", "reason": "unsupported", "why": "It needs FP4."},
    ],
}


@pytest.fixture
def ready(host: FakeHost) -> FakeHost:
    """A host on which a start of a preset succeeds at once."""
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines()
    host.answers["POST /v1/plans"] = (201, PLANNED)
    host.answers["POST /v1/fit"] = (200, REPORT)
    host.answers["POST /v1/engines"] = (202, {**ENGINE, "state": "preparing"})
    host.answers["GET /v1/events"] = READY
    return host


def received(host: FakeHost, request: str) -> Any:
    return next(body for name, _, body in host.received if name == request)


def test_a_dry_run_shows_the_whole_plan(ready: FakeHost, sndr: Sndr) -> None:
    code, out, _ = sndr("launch", "p", "--dry-run")
    assert code == 0
    assert not was_started(ready)
    for words in (
        "p fits on this machine: 19.0 GiB of 24.0 GiB (RTX 3090 #0).",
        "streams = 2  (profile: profiles/latency.yaml, line 8)",
        "changes preset: q → p",
        "gpu_layers = auto",
        "embeddings = no",
        "the same: sndr launch p",
    ):
        assert words in out


def test_the_first_start_of_somebody_elses_preset_needs_consent(ready: FakeHost, sndr: Sndr) -> None:
    demand = {"file": "own/p.yaml", "line": 7, "key": "k", "what": "--tools all", "does": "Runs commands."}
    needed = {"digest": "d" * 64, "demands": [demand], "contents": ["d" * 64]}
    problem = {"reason": "consent_needed", "message": "own/p.yaml asks.", "fix": {"text": "Look."}}

    def answer() -> tuple[int, Any]:
        if received(ready, "POST /v1/engines") and ready.received[-1][2].get("consent") == "d" * 64:
            return 202, {**ENGINE, "state": "preparing"}
        return 403, {"error": {**problem, "evidence": needed}}

    ready.answers["POST /v1/plans"] = (201, {**PLANNED, "consent": needed})
    ready.answers["POST /v1/engines"] = answer
    _, out, _ = sndr("launch", "p", "--dry-run")
    assert "own/p.yaml asks for:\n  --tools all  (line 7, k)\n      Runs commands." in out
    code, _, err = sndr("launch", "p")
    assert (code, f"$ sndr launch p --accept {'d' * 64}" in err) == (6, True)
    assert "  --tools all  (line 7, k)" in err
    code, _, err = sndr("launch", "p", "--detach", "--accept", "d" * 64)
    assert (code, "Error" in err) == (0, False)


def test_what_stops_a_start_comes_with_what_to_do_and_its_exit_code(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["POST /v1/plans"] = (201, {**PLANNED, "findings": [FINDING]})
    code, out, _ = sndr("launch", "p", "--dry-run")
    assert code == 5
    assert "error: python3 (pid 7) holds 8.0 GiB.\n  End it.\n  $ kill 7" in out
    code, out, _ = sndr("launch", "p", "--dry-run", "--json")
    assert code == 5
    assert json.loads(out)["findings"][0]["id"] == "vram_held"


def test_the_request_holds_what_was_given(ready: FakeHost, sndr: Sndr) -> None:
    code, _, _ = sndr(
        "launch", "p", "--model", "/m/x.gguf", "--override", "context=4096", "--set", "streams=3",
        "--without", "a", "--keep", "--dry-run",
    )  # fmt: skip
    assert code == 0
    body = received(ready, "POST /v1/plans")
    assert (body["preset"], body["model"], body["keep"]) == ("p", "/m/x.gguf", True)
    assert (body["overrides"]["context"], body["overrides"]["streams"]) == (4096, 3)
    assert body["patches"]["off"] == ["a"]
    fit = received(ready, "POST /v1/fit")
    assert fit == {"preset": "p", "model": "/m/x.gguf", "context": 4096, "streams": 3}


def test_the_plan_is_shown_and_then_started_and_followed(ready: FakeHost, sndr: Sndr) -> None:
    code, out, err = sndr("launch", "p", "--detach")
    assert code == 0
    assert was_started(ready)
    assert err.index("p fits on this machine") < err.index("demo is ready")
    assert "Endpoint:" in out


def test_as_json_the_plan_is_the_first_value(ready: FakeHost, sndr: Sndr) -> None:
    code, out, _ = sndr("launch", "p", "--detach", "--json")
    assert code == 0
    first, *_, last = (json.loads(line) for line in out.splitlines())
    assert first["preset"] == "p"
    assert last["engine"]["id"] == "engine-1"
    assert not any(request == "POST /v1/fit" for request, _, _ in ready.received)


def test_what_runs_is_not_ended_unasked(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    plan = {**ready.answers["POST /v1/plans"][1], "command": "sndr launch p --instead-of other"}
    ready.answers["POST /v1/plans"] = (201, {**plan, "instead_of": [{"id": OTHER["id"], "name": "other"}]})
    code, _, err = sndr("launch", "p")
    assert code == 6
    assert not was_started(ready)
    assert "sndr launch p --instead-of other" in err
    assert sndr("launch", "p", "--replace", "--detach")[0] == 0


def test_a_bad_override_starts_nothing(ready: FakeHost, sndr: Sndr) -> None:
    for words in (("--override", "contxt=1"), ("--override", "streams=0")):
        assert sndr("launch", "p", *words)[0] == 2
    assert not ready.received


def test_verdicts_show_what_works_and_what_is_missing(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/presets/verdicts"] = (200, VERDICTS)
    code, out, _ = sndr("presets", "verdicts", "--hardware", "rtx-3090", "--count", "2")
    assert code == 0
    assert received(host, "POST /v1/presets/verdicts") == {"hardware": "rtx-3090", "count": 2}
    assert "On 2 × RTX 3090:" in out
    assert "memory of each GPU, all streams" in out
    assert "75.6 tok/s" in out
    good = next(line for line in out.splitlines() if line.startswith("good"))
    assert "nothing" not in good, "what is here says nothing of another machine"
    assert "files" in next(line for line in out.splitlines() if line.startswith("absent"))
    assert "To start" not in out
    out = sndr("presets", "verdicts")[1]
    assert "nothing" in next(line for line in out.splitlines() if line.startswith("good"))
    assert "To start good:\n  $ sndr launch good\n" in out
    assert "To start absent:\n  It is not here.\n    $ hf download it" in out
    assert "never" not in out
    assert "1 more do not fit or cannot run" in out
    assert "It needs FP4." in sndr("presets", "verdicts", "--all")[1]
    assert json.loads(sndr("presets", "verdicts", "--json")[1])["verdicts"][2]["preset"] == "never"


def test_text_and_json_of_the_verdicts_have_the_same_figures_by_the_same_names(
    host: FakeHost, sndr: Sndr
) -> None:
    measured = {**dict.fromkeys(("metric", "machine", "pin", "source"), "x"), "by": "others"}
    drafting = {
        "preset": "pair",
        "verdict": "fits",
        "decode": 214.4,
        "decode_undrafted": 53.6,
        "measured": {**measured, "value": 83.1, "unit": "tok/s"},
        "measured_why": "Above it because drafts were accepted.",
    }
    plain = {"preset": "plain", "verdict": "fits", "decode": 75.6}
    host.answers["POST /v1/presets/verdicts"] = (200, {"hardware": "x", "verdicts": [drafting, plain]})
    head, *rows = sndr("presets", "verdicts", "--hardware", "l4")[1].splitlines()[1:4]
    names = ("decode, ≤", "undrafted, ≤", "measured", "missing")
    starts = [head.index(name) for name in names]
    told = [[row[at:end].strip() for at, end in itertools.pairwise(starts)] for row in rows]
    assert told == [["214 tok/s", "53.6 tok/s", "83.1 tok/s"], ["75.6 tok/s", "", ""]]
    assert rows[0].endswith("  Above it because drafts were accepted.")
    spoken = json.loads(sndr("presets", "verdicts", "--hardware", "l4", "--json")[1])["verdicts"]
    assert [(one["decode"], one["decode_undrafted"]) for one in spoken] == [(214.4, 53.6), (75.6, None)]
    assert spoken[0]["measured_why"] == "Above it because drafts were accepted."


def test_presets_for_more_cards_than_were_named_are_told(host: FakeHost, sndr: Sndr) -> None:
    few = {**FILES, "id": "preset.gpus", "message": "It needs 2 GPUs; there is one."}
    page = {**VERDICTS, "verdicts": [{"preset": "pair", "verdict": "cannot_run", "missing": [few]}]}
    host.answers["POST /v1/presets/verdicts"] = (200, page)
    out = sndr("presets", "verdicts", "--hardware", "rtx-3090")[1]
    assert '1 of them needs more GPUs: sndr presets verdicts --hardware "2x rtx-3090"' in out
    assert "more GPUs" not in sndr("presets", "verdicts", "--hardware", "8x rtx-3090")[1]
    assert "more GPUs" not in sndr("presets", "verdicts")[1]


def test_everything_that_can_be_missing_has_a_word() -> None:
    missing = [key for key in PRESETS if key.startswith(("preset.", "weights.", "engine."))]
    words = {key: word_of(key.partition("/")[0]) for key in (*missing, "drafter_missing")}
    told = {
        "preset.consent",
        "preset.other_version",
        "preset.other_weights",
        "preset.overruled",
        "preset.unproven",
    }
    assert {key for key, word in words.items() if not word} == told, "notes, and nothing that is missing"


def test_hardware_is_written_the_same_everywhere(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/presets/verdicts"] = (200, VERDICTS)
    for words in (("2x rtx-3090",), ("2 x rtx-3090",), ("2×rtx-3090", "--count", "2")):
        assert sndr("presets", "verdicts", "--hardware", *words)[0] == 0
        assert received(host, "POST /v1/presets/verdicts") == {"hardware": "rtx-3090", "count": 2}
    page = {"seq": 0, "presets": []}
    host.answers["GET /v1/presets"] = (200, page)
    for command in (
        ("presets", "verdicts"),
        ("presets", "resolve", "p"),
        ("patches", "plan", "--preset", "p"),
        ("launch", "p", "--render", "docker"),
    ):
        code, _, err = sndr(*command, "--hardware", "2x rtx-3090", "--count", "4")
        assert code == 2
        assert "--hardware says 2 GPUs and --count says 4: give one of them." in err
        sndr(*command, "--hardware", "2x rtx-3090")
        sent = host.received[-1][2]
        assert (sent["hardware"], sent["count"]) == ("rtx-3090", 2)
    assert "1 to 8 GPUs" in sndr("presets", "resolve", "p", "--hardware", "9x l4")[2]
    code, _, err = sndr("presets", "resolve", "p", "--count", "2")
    assert (code, "--count goes with --hardware." in err) == (2, True)


def test_where_nothing_works_it_says_so(host: FakeHost, sndr: Sndr) -> None:
    nothing = {**VERDICTS, "verdicts": VERDICTS["verdicts"][2:]}
    host.answers["POST /v1/presets/verdicts"] = (200, nothing)
    assert "No preset would work." in sndr("presets", "verdicts")[1]


def _checked(sha256: str | None, problem: str = "") -> tuple[int, Any]:
    file = {"name": "m.gguf", "path": "/m/m.gguf", "expected": "aa", "sha256": sha256, "problem": problem}
    job = {
        "id": "job-1",
        "kind": "preset.verify",
        "title": "Verify",
        "touches": "files",
        "state": "done",
        "created_at": 1.0,
        "result": {"preset": "p", "model": "/m/m.gguf", "files": [file]},
    }
    return 202, job


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (_checked("aa"), 0, "m.gguf: right."),
        (_checked("bb"), 5, "Its SHA-256 is bb, not aa."),
        (_checked(None, "Permission denied"), 5, "m.gguf: cannot be read: Permission denied."),
    ],
)
def test_verify_says_whether_files_are_right(
    host: FakeHost, sndr: Sndr, answer: tuple[int, Any], code: int, said: str
) -> None:
    host.answers["POST /v1/presets/p/verify"] = answer
    found, out, _ = sndr("presets", "verify", "p")
    assert (found, said in out) == (code, True)


def test_fit_asks_for_a_preset_with_nothing_but_what_was_given(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/fit"] = (200, REPORT)
    code, out, _ = sndr("fit", "--preset", "p", "--context", "4096", "--no-eager")
    assert code == 0
    assert out.startswith("p: m/q4 with llama.cpp")
    body = received(host, "POST /v1/fit")
    assert body | {"engine": "auto", "grid": False} == {
        "preset": "p",
        "context": 4096,
        "eager": False,
        "engine": "auto",
        "grid": False,
    }
    assert sndr("fit")[0] == 2
