"""Configs from the hub, of a fake of huggingface.co on a real socket: only asked for, pinned, kept."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.library.hub.configs import Hub, is_name
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run
from tests.unit.library.fake_hub import COMMIT, FakeHub, fake_hub

CONFIG = {"model_type": "qwen3", "num_hidden_layers": 2}
FILES = {"model-1.safetensors": 10, "model-2.safetensors": 20, "consolidated.safetensors": 30, "a.txt": 1}


@pytest.fixture
def served() -> Iterator[FakeHub]:
    """A fake hub with one model."""
    with fake_hub() as made:
        made.models["org/name"] = (CONFIG, FILES)
        yield made


def hub(served: FakeHub, folder: Path, **environment: str) -> Hub:
    return Hub(folder, {"HF_ENDPOINT": served.endpoint, **environment})


def refusal(work: Hub, name: str, revision: str = "main") -> HostError:
    with pytest.raises(HostError) as caught:
        run(work.read(name, revision))
    return caught.value


def test_reads_the_config_pins_the_commit_and_adds_up_the_weights(served: FakeHub, tmp_path: Path) -> None:
    found = run(hub(served, tmp_path).read("org/name"))
    assert (found.config, found.revision, found.size) == (CONFIG, COMMIT, 30)
    assert found.endpoint == served.endpoint
    assert served.paths == [
        "/org/name/resolve/main/config.json",
        f"/api/models/org/name/revision/{COMMIT}?blobs=true",
    ]


def test_what_was_read_is_remembered_and_asks_for_nothing(served: FakeHub, tmp_path: Path) -> None:
    found = run(hub(served, tmp_path).read("org/name"))
    served.requests.clear()
    again = hub(served, tmp_path)
    assert again.known("org/name") == found
    assert again.known(found.name) == found
    assert again.known(f"org/name@{COMMIT[:8]}") == found
    assert again.known("org/name@ffff") is None
    assert again.known("org/other") is None
    assert again.known("../name") is None
    assert again.all_known() == (found,)
    (tmp_path / "org--name" / "broken.json").write_text("{")
    assert again.known("org/name") == found
    assert served.requests == []


def test_without_all_sizes_none_is_made_up(served: FakeHub, tmp_path: Path) -> None:
    served.models["org/name"] = (CONFIG, {"a.safetensors": 10, "b.safetensors": 0})
    assert run(hub(served, tmp_path).read("org/name")).size is None


def test_a_token_is_sent_when_there_is_one(served: FakeHub, tmp_path: Path) -> None:
    run(hub(served, tmp_path, HF_TOKEN="hf_x").read("org/name"))
    run(hub(served, tmp_path).read("org/name"))
    assert [token for _path, token in served.requests] == ["Bearer hf_x", "Bearer hf_x", "", ""]


def test_a_token_that_no_header_carries_is_not_shown(served: FakeHub, tmp_path: Path) -> None:
    refused = refusal(hub(served, tmp_path, HF_TOKEN="hf_secret\nx: y"), "org/name")
    assert "HF_TOKEN" in refused.problem.sentence()
    assert "secret" not in refused.problem.model_dump_json()


@pytest.mark.parametrize(
    ("status", "code", "reason", "says"),
    [
        (401, "GatedRepo", Reason.UNAUTHORIZED, "licence"),
        (403, "GatedRepo", Reason.UNAUTHORIZED, "licence"),
        (401, "RepoNotFound", Reason.NOT_FOUND, "no public model"),
        (404, "EntryNotFound", Reason.NOT_FOUND, "no config.json"),
        (404, "RevisionNotFound", Reason.NOT_FOUND, "no revision main"),
        (404, "", Reason.NOT_FOUND, "no public model"),
        (429, "", Reason.RATE_LIMITED, "status 429"),
        (500, "", Reason.DOWNLOAD_FAILED, "status 500"),
    ],
)
def test_each_refusal_says_what_to_do(
    served: FakeHub, tmp_path: Path, status: int, code: str, reason: Reason, says: str
) -> None:
    served.errors["org/name"] = (status, code)
    error = refusal(hub(served, tmp_path), "org/name")
    assert error.reason is reason
    assert says in error.problem.message
    assert error.problem.fix is not None
    assert not list(tmp_path.iterdir())


def test_offline_is_said_and_asks_for_nothing(served: FakeHub, tmp_path: Path) -> None:
    error = refusal(hub(served, tmp_path, HF_HUB_OFFLINE="1"), "org/name")
    assert (error.reason, served.requests) == (Reason.OFFLINE, [])
    nowhere = Hub(tmp_path, {"HF_ENDPOINT": "http://127.0.0.1:9"})
    error = refusal(nowhere, "org/name")
    assert error.reason is Reason.OFFLINE
    assert "could not be reached" in error.problem.message


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b""])
def test_an_answer_that_is_no_config_is_said(served: FakeHub, tmp_path: Path, body: bytes) -> None:
    served.bodies["org/name"] = body
    assert refusal(hub(served, tmp_path), "org/name").reason is Reason.MODEL_FILE_DAMAGED


@pytest.mark.parametrize("name", ["name", "a/b/c", "../b", "org/name?x", "org/na me", "http://x/y"])
def test_what_is_no_name_is_never_sent(served: FakeHub, tmp_path: Path, name: str) -> None:
    error = refusal(hub(served, tmp_path), name)
    assert (error.reason, served.requests) == (Reason.BAD_REQUEST, [])
    assert is_name("org/name@main")
    assert not is_name(name)


def test_answers_that_are_larger_than_they_look_are_refused(served: FakeHub, tmp_path: Path) -> None:
    served.bodies["org/name"] = gzip.compress(gzip.compress(bytes(64 << 20)))
    served.headers["org/name"] = {"Content-Encoding": "gzip, gzip"}
    error = refusal(hub(served, tmp_path), "org/name")
    assert error.reason is Reason.DOWNLOAD_FAILED
    assert "compressed" in error.problem.cause


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"1e999", b"NaN", b"[]", b"\xff"])
def test_answers_that_are_no_config_are_damaged(served: FakeHub, tmp_path: Path, body: bytes) -> None:
    served.bodies["org/name"] = body
    assert refusal(hub(served, tmp_path), "org/name").reason is Reason.MODEL_FILE_DAMAGED


def test_redirects_in_a_circle_end(served: FakeHub, tmp_path: Path) -> None:
    served.redirects["org/name"] = "/org/name/again"
    assert refusal(hub(served, tmp_path), "org/name").reason is Reason.DOWNLOAD_FAILED
    assert len(served.paths) < 10


@pytest.mark.parametrize(
    "environment",
    [
        {"HF_TOKEN": "schlüssel"},
        {"HF_TOKEN": "a\nb: c"},
        {"HF_ENDPOINT": "http://["},
        {"HF_ENDPOINT": "nonsense"},
        {"HF_ENDPOINT": "ftp://example.org"},
        {"HF_ENDPOINT": "http://a b"},
    ],
    ids=str,
)
def test_variables_that_mean_nothing_are_a_clear_error(tmp_path: Path, environment: dict[str, str]) -> None:
    work = Hub(tmp_path, {"HF_ENDPOINT": "http://127.0.0.1:9", **environment})
    assert refusal(work, "org/name").reason in {Reason.DOWNLOAD_FAILED, Reason.OFFLINE}


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE"])
def test_proxies_and_certificates_that_are_none_are_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "foo://nothing")
    assert (
        refusal(Hub(tmp_path, {"HF_ENDPOINT": "https://127.0.0.1:9"}), "org/name").reason
        is Reason.DOWNLOAD_FAILED
    )


def test_what_is_remembered_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "org--name").mkdir()
    for number, written in enumerate(
        ('{"repository": 1}', "[" * 5000, '{"read_at": "x", "repository": "org/name"}', "{}", '"x"', "\xff")
    ):
        (tmp_path / "org--name" / f"{number}.json").write_text(written)
    os.mkfifo(tmp_path / "org--name" / "pipe.json")
    assert Hub(tmp_path, {}).known("org/name") is None
    assert Hub(tmp_path, {}).all_known() == ()
