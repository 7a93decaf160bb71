"""`sndr run` beside an engine that runs, with a key, and detached, against a host of canned answers."""

import json
import shlex
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from engine_host.cli.root import root
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, PLAN, engines

Sndr = Callable[..., tuple[int, str, str]]
OTHER = {**ENGINE, "id": "engine-0", "name": "other", "state": "busy"}
HOST: dict[str, Any] = {
    "seq": 0,
    "run_id": "r",
    "program": "sndr 0.1.0",
    "pid": 1,
    "started_at": 1.0,
    "hostname": "here",
    "os": "Linux",
    "python": "3.12",
    "cpu_name": "a processor",
    "cpu_cores": 2,
    "cpu_threads": 2,
    "ram_total": 2,
    "ram_used": 1,
    "gpus": [],
    "gpu_absence": "no_driver",
    "driver": None,
    "cuda": None,
    "run_folder": "/r",
    "data_folder": "/d",
    "log_folder": "/l",
    "endpoint": {
        "url": "http://127.0.0.1:8020/v1",
        "host": "127.0.0.1",
        "port": 8020,
        "wanted_port": 8020,
        "reach": "this_machine",
        "key_required": False,
    },
    "ends_with_window": False,
}
READY = [{"kind": "engine.state", "seq": 1, "engine": ENGINE}]


@pytest.fixture
def ready(host: FakeHost) -> FakeHost:
    """A host on which a start succeeds at once."""
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines()
    host.answers["POST /v1/plans"] = (201, PLAN)
    host.answers["POST /v1/engines"] = (202, {**ENGINE, "state": "preparing"})
    host.answers["GET /v1/events"] = READY
    model = {
        "id": "demo",
        "name": "demo",
        "path": "/m/demo.gguf",
        "size": 1,
        "found_in": "x",
        "format": "GGUF",
    }
    models = [{**model, "origin": "bundled"}]
    host.answers["GET /v1/models"] = (200, {"seq": 0, "models": models, "folders": []})
    return host


def was_started(host: FakeHost) -> bool:
    return any(request == "POST /v1/engines" for request, _, _ in host.received)


SAME_NAME = {
    **PLAN,
    "instead_of": [{"id": "engine-0", "name": "other"}],
    "command": "sndr run demo --instead-of other",
}


def test_engines_run_side_by_side(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    beside = {**PLAN, "beside": [{"id": "engine-0", "name": "other"}]}
    beside["needs"] = [{"device": "memory", "bytes": 3 << 30}, {"device": "GPU-1"}]
    ready.answers["POST /v1/plans"] = (201, beside)
    said = sndr("run", "demo", "--dry-run")[1]
    assert "beside: other" in said
    assert "takes about: main memory 3.0 GiB, GPU-1 not known" in said
    assert sndr("run", "demo", "--detach")[0] == 0
    assert was_started(ready)


@pytest.mark.parametrize("setting", ["embeddings", "reranking"])
def test_a_demo_that_writes_no_answers_is_asked_nothing(ready: FakeHost, sndr: Sndr, setting: str) -> None:
    settings = [{"name": setting, "value": True, "layer": "override", "why": ""}]
    engine = {**ENGINE, "plan": {**PLAN, "settings": settings}}
    ready.answers["GET /v1/events"] = [{"kind": "engine.state", "seq": 1, "engine": engine}]
    code, out, err = sndr("run", "--demo", "--set", f"{setting}=true", "--detach")
    assert code == 0, err
    assert "writes no answer" in out + err
    assert "> " not in out


def test_a_start_of_the_same_name_is_refused_and_the_ways_on_are_named(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    ready.answers["POST /v1/plans"] = (201, SAME_NAME)
    code, _, err = sndr("run", "demo")
    assert code == 6
    assert not was_started(ready)
    for words in (
        "other runs already",
        "http://127.0.0.1:8020/v1",
        "sndr chat",
        "--name",
        SAME_NAME["command"],
    ):
        assert words in err
    code, out, _ = sndr("run", "demo", "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (6, "conflict")


@pytest.mark.parametrize(
    ("change", "code"),
    [({}, 0), ({"changes": ["context: 8,192 → 4,096"]}, 6), ({"model_path": "/m/other.gguf"}, 6)],
)
def test_what_runs_already_as_it_is_asked_for_is_there(
    ready: FakeHost, sndr: Sndr, change: dict[str, Any], code: int
) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    ready.answers["POST /v1/plans"] = (201, {**SAME_NAME, **change})
    found, out, err = sndr("run", "demo", "--detach")
    assert found == code, err
    assert not was_started(ready)
    assert ("other runs already, as it is asked for." in err) is (code == 0)
    assert ("Endpoint: http://127.0.0.1:8020/v1" in out) is (code == 0)


@pytest.mark.parametrize("state", ["unloaded", "failed", "draining", "stopping"])
def test_an_engine_that_is_gone_is_not_in_the_way(ready: FakeHost, sndr: Sndr, state: str) -> None:
    ready.answers["GET /v1/engines"] = engines({**OTHER, "state": state})
    assert sndr("run", "demo", "--detach")[0] == 0
    assert was_started(ready)


def test_a_start_that_would_end_another_says_so_everywhere(ready: FakeHost, sndr: Sndr) -> None:
    finding = {
        "id": "replaces",
        "severity": "info",
        "message": "other runs now and is stopped first; its requests get ten seconds to end.",
        "evidence": {"engine": "engine-0", "name": "other"},
    }
    changed = {"findings": [finding], "changes": ["context: 8,192 → 4,096"]}
    ready.answers["POST /v1/plans"] = (201, {**SAME_NAME, **changed})
    ready.answers["GET /v1/engines"] = engines(OTHER)
    out = sndr("run", "demo", "--dry-run")[1]
    assert "other runs already." in out
    assert "is stopped first; its requests" not in out
    for words in (("--replace",), ("--instead-of", "other")):
        assert "its requests get ten seconds" in sndr("run", "demo", "--dry-run", *words)[1]
    code, _, err = sndr("run", "demo", "--detach")
    assert (code, "$ sndr run demo --instead-of other --detach" in err) == (6, True)


def test_what_may_be_ended_goes_into_the_request(ready: FakeHost, sndr: Sndr) -> None:
    asked: dict[tuple[str, ...], Any] = {(): None, ("--replace",): ["*"]}
    asked["--instead-of", "a", "--instead-of", "b"] = ["a", "b"]
    for words, instead_of in asked.items():
        assert sndr("run", "demo", "--detach", *words)[0] == 0
        sent = {request: body for request, _, body in ready.received}
        assert sent["POST /v1/plans"].get("instead_of") == instead_of
        assert sent["POST /v1/engines"]["replace"] is bool(words)
    assert sndr("run", "demo", "--replace", "--instead-of", "a")[0] == 2


def test_replace_takes_the_place_of_what_runs(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    code, out, _ = sndr("run", "demo", "--replace", "--detach")
    assert code == 0
    assert was_started(ready)
    assert "sndr stop" in out


def test_the_help_says_how_engines_run_side_by_side(sndr: Sndr) -> None:
    assert "side by side" in " ".join(sndr("run", "--help")[1].split())
    options = {option for parameter in root.commands["run"].params for option in parameter.opts}
    assert {"--replace", "--instead-of"} <= options


def test_a_dry_run_is_not_refused(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    assert sndr("run", "demo", "--dry-run")[0] == 0


@pytest.mark.parametrize("replaced", [True, False])
def test_the_end_of_an_engine_says_if_another_replaced_it(
    ready: FakeHost, sndr: Sndr, replaced: bool
) -> None:
    instead_of = [{"id": ENGINE["id"], "name": "demo"}] if replaced else []
    other = {**OTHER, "plan": {**OTHER["plan"], "instead_of": instead_of}}
    ready.answers["GET /v1/engines"] = engines(other)
    gone = {"kind": "engine.state", "seq": 2, "engine": {**ENGINE, "state": "unloaded"}}
    ready.answers["GET /v1/events"] = [*READY, gone]
    code, _, err = sndr("run", "demo")
    assert code == 0
    assert f"demo {'was replaced by other' if replaced else 'was stopped'}." in err


def test_failure_of_a_detached_start_says_what_still_runs(ready: FakeHost, sndr: Sndr) -> None:
    failed = {**ENGINE, "state": "failed", "problem": {"reason": "out_of_memory", "message": "Does not fit."}}
    ready.answers["GET /v1/events"] = [{"kind": "engine.state", "seq": 1, "engine": failed}]
    code, _, err = sndr("run", "demo", "--detach")
    assert code == 5
    assert "the host still does: `sndr quit` ends it" in err


OWNED = {**HOST, "ends_with_window": True, "owner": "the window that started it"}


def stays(host: FakeHost) -> list[bool]:
    """Return the requests to stay that the host got, in order."""
    return [body["stays"] for call, _, body in host.received if call == "POST /v1/host/stay"]


def test_detached_means_that_a_window_leaves_its_host_here(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/host"] = (200, OWNED)
    ready.answers["POST /v1/host/stay"] = (200, HOST)
    code, _, err = sndr("run", "demo", "--detach")
    assert code == 0
    assert stays(ready) == [True]
    assert "which would end with the window that started it, stays from now on" in err


def test_a_detached_start_that_fails_gives_the_host_back_to_its_window(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/host"] = (200, OWNED)
    ready.answers["POST /v1/host/stay"] = (200, HOST)
    failed = {**ENGINE, "state": "failed", "problem": {"reason": "out_of_memory", "message": "Does not fit."}}
    ready.answers["GET /v1/events"] = [{"kind": "engine.state", "seq": 1, "engine": failed}]
    assert sndr("run", "demo", "--detach")[0] == 5
    assert stays(ready) == [True, False]


def test_a_start_that_is_not_detached_leaves_the_host_to_its_window(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/host"] = (200, OWNED)
    ready.answers["GET /v1/events"] = [
        *READY,
        {"kind": "engine.state", "seq": 2, "engine": {**ENGINE, "state": "unloaded"}},
    ]
    sndr("run", "demo")
    assert stays(ready) == []


def test_status_says_with_whom_the_host_ends(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines()
    assert "stays until `sndr quit`" in sndr("status")[1]
    ready.answers["GET /v1/host"] = (200, OWNED)
    assert "ends with the window that started it" in sndr("status")[1]


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[str | None]]]:
    """An endpoint that wants the key `secret`; its address, and the keys that it was given."""
    given: list[str | None] = []

    class Door(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            given.append(self.headers["x-api-key"])
            known = given[-1] == "secret"
            body = b'data: {"choices": [{"delta": {"content": "Hello."}}]}\n\ndata: [DONE]\n\n'
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(body if known else b'{"error": {"message": "An API key is needed."}}')

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", given
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def locked(host: FakeHost, url: str) -> None:
    place = {**HOST["endpoint"], "url": url, "key_required": True}
    host.answers["GET /v1/host"] = (200, {**HOST, "endpoint": place})
    host.answers["GET /v1/keys/own"] = (200, {"key": None})


def test_the_demos_question_brings_a_key_of_this_run(
    ready: FakeHost, sndr: Sndr, endpoint: tuple[str, list[str | None]]
) -> None:
    url, given = endpoint
    locked(ready, url)
    ready.answers["GET /v1/keys/own"] = (200, {"key": "secret"})
    code, out, err = sndr("run", "--demo", "--detach")
    assert (code, given) == (0, ["secret"]), err
    assert "Hello." in out
    assert "secret" not in out
    assert "Authorization: Bearer KEY" in out


def test_a_refused_question_of_a_detached_demo_says_what_still_runs(
    ready: FakeHost, sndr: Sndr, endpoint: tuple[str, list[str | None]]
) -> None:
    locked(ready, endpoint[0])
    ready.answers["GET /v1/engines"] = engines(ENGINE)
    code, _, err = sndr("run", "--demo", "--detach")
    assert code == 3
    assert "  Note:       demo still runs: `sndr stop --all` ends what runs" in err
    assert "still runs" not in err.partition("Note:")[0], "it is no reason for the failure"


def test_a_refused_start_says_nothing_of_what_ran_before(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["GET /v1/engines"] = engines(OTHER)
    refused = {"reason": "setting_invalid", "message": "This machine has no GPU."}
    ready.answers["POST /v1/plans"] = (400, {"error": refused})
    code, _, err = sndr("run", "mine", "--gpu", "0", "--detach")
    assert (code != 0, "no GPU" in err, "Note:" in err) == (True, True, False)


def test_flags_become_the_request(ready: FakeHost, sndr: Sndr) -> None:
    ready.answers["POST /v1/plans"] = (201, {**PLAN, "findings": []})
    sndr(
        *("run", "Org/Model", "--dry-run", "--engine", "vllm", "--installation", "0.32.0-cpu"),
        *("--kv-cache-dtype", "fp8", "--speculation", "mtp", "--set", "eager=false"),
        *("--without", "a", "--without", "family.b", "--with", "c", "--only", "d"),
    )
    (received,) = [body for request, _, body in ready.received if request == "POST /v1/plans"]
    assert received["model"] == "Org/Model", "a name of the Hugging Face cache is no path"
    assert (received["engine"], received["installation"]) == ("vllm", "0.32.0-cpu")
    overrides = {name: value for name, value in received["overrides"].items() if value not in (None, [])}
    assert overrides == {"kv_cache_dtype": "fp8", "speculation": "mtp", "eager": False}
    assert received["patches"] == {"off": ["a", "family.b"], "on": ["c"], "only": ["d"]}


def test_why_a_start_is_refused_is_said_once(ready: FakeHost, sndr: Sndr) -> None:
    reason, said = "out_of_memory", "190.8 GiB are wanted."
    finding = {"id": "memory_short", "severity": "error", "reason": reason, "message": said}
    note = {"id": "tip", "severity": "info", "message": "It could be faster."}
    ready.answers["POST /v1/plans"] = (201, {**PLAN, "findings": [note, finding]})
    ready.answers["POST /v1/engines"] = (422, {"error": {"reason": reason, "message": said}})
    code, _, err = sndr("run", "demo")
    assert (code, err.count(said), "It could be faster." in err) == (5, 1, True)
    assert all(headers["user-agent"].startswith("sndr/") for _, headers, _ in ready.received)


def test_the_demo_of_an_engine_is_the_form_that_it_reads(ready: FakeHost, sndr: Sndr) -> None:
    listed = ready.answers["GET /v1/models"][1]
    (gguf,) = listed["models"]
    code, _, err = sndr("run", "--demo", "--engine", "vllm", "--dry-run")
    assert code == 4
    assert "$ make setup" in err, "the bundled safetensors are made by it"
    listed["models"] = [gguf, {**gguf, "id": "demo-safetensors", "format": "safetensors"}]
    for engine, model in (("vllm", "demo-safetensors"), ("auto", "demo"), ("llama.cpp", "demo")):
        assert sndr("run", "--demo", "--engine", engine, "--dry-run")[0] == 0
        received = [body for request, _, body in ready.received if request == "POST /v1/plans"]
        assert received[-1]["model"] == model


def test_the_command_of_a_plan_can_be_pasted(ready: FakeHost, sndr: Sndr) -> None:
    argv = ["/a folder/vllm", "serve", "--alias", 'a b/c"', "--config", '{"sndr_patches": ["$x"]}']
    ready.answers["POST /v1/plans"] = (201, {**PLAN, "argv": argv})
    _, out, _ = sndr("run", "demo", "--dry-run")
    (line,) = [line for line in out.splitlines() if line.startswith("command: ")]
    assert shlex.split(line.removeprefix("command: ")) == argv


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--context", "2048", "--set", "context=4096"), ("--context", "--set context=4096")),
        (("--kv-type", "q8_0", "--set", "kv_type_k=f16"), ("--kv-type", "--set kv_type_k=f16")),
        (("--set", "threads=2", "--set", "threads=3"), ("--set", "--set threads=3")),
    ],
)
def test_a_setting_that_is_given_twice_is_refused(
    sndr: Sndr, words: tuple[str, ...], names: tuple[str, str]
) -> None:
    code, _, err = sndr("run", "demo", "--dry-run", *words)
    assert code == 2
    assert all(name in err for name in names)


@pytest.mark.parametrize(
    ("given", "setting", "received", "option"),
    [
        (["--kv-type", "q9"], "kv_type_k", "q9", "--kv-type q9: "),
        (["--set", "kv_type_k=q9"], "kv_type_k", "q9", "--set kv_type_k=q9: "),
        (["--speculation", "draft"], "speculation", "draft", "--speculation draft: "),
        (["--kv-cache-dtype", "q9"], "kv_cache_dtype", "q9", "--kv-cache-dtype q9: "),
        (["--set", "gpu_memory=0.5"], "gpu_memory", 0.5, "--set gpu_memory=0.5: "),
        # It is the preset's, and no option can be blamed for it.
        ([], "speculation", "draft", ""),
    ],
)
@pytest.mark.parametrize("words", [["run", "demo"], ["launch", "p"], ["launch", "p", "--render", "shell"]])
def test_a_value_that_an_engine_does_not_know_is_a_wrong_option(
    ready: FakeHost,
    sndr: Sndr,
    words: list[str],
    given: list[str],
    setting: str,
    received: object,
    option: str,
) -> None:
    problem = {
        "reason": "setting_invalid",
        "message": "The server does not know it.",
        "cause": "It offers this, that.",
        "evidence": {"setting": setting, "asked": received, "offered": ["this", "that"]},
    }
    for path in ("plans", "render"):
        ready.answers[f"POST /v1/{path}"] = (400, {"error": problem})
    code, _, err = sndr(*words, *given)
    assert code == 2
    assert f"Error: {option}The server does not know it.\n  Why:        It offers this, that.\n" in err
    assert not was_started(ready)


def test_an_engine_that_dies_while_it_serves_is_named_before_the_lines_of_its_log(
    ready: FakeHost, sndr: Sndr
) -> None:
    lines = [*(f"slot {number} released" for number in range(30)), "CUDA error: out of memory", "bye"]
    evidence = {"line": "CUDA error"}
    problem = {"reason": "out_of_memory", "message": "It ran out of memory.", "evidence": evidence}
    stages = [{"name": "weights", "started_at": 1.0, "ended_at": 2.0}]
    died = {**ENGINE, "state": "failed", "problem": problem, "last_lines": lines, "stages": stages}
    ready.answers["GET /v1/engines"] = engines()
    ready.answers["GET /v1/events"] = [*READY, {"kind": "engine.state", "seq": 2, "engine": died}]
    code, _, err = sndr("run", "demo")
    assert code == 5
    told = err[err.index("Serving.") :]
    assert told.index("demo (engine-1)") < told.index("Error: It ran out of memory.") < told.index("slot 29")
    assert "> CUDA error: out of memory" in told
    assert "slot 20" not in told, "what leads nowhere is in its log"
    assert told.rstrip().endswith("$ sndr autopsy engine-1")
