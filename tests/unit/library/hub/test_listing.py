"""What a FAKE hub says of its models: searched, listed, grouped; and what is not believed."""

from collections.abc import Iterator

import pytest

from engine_host.core.errors import HostError
from engine_host.library.hub.choices import choices_of
from engine_host.library.hub.listing import HubFile, is_safe, list_files, search
from engine_host.library.hub.requests import HubRequests
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run
from tests.unit.library.hub.hub_server import COMMIT, HubServer, Served, hub_server

NAME = "org/name"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as made:
        made.repositories[NAME] = Served({"a-Q4_K_M.gguf": b"x" * 200, "README.md": b"x"})
        yield made


def requests(hub: HubServer, **environment: str) -> HubRequests:
    return HubRequests({"HF_ENDPOINT": hub.endpoint, **environment})


def file(name: str, size: int = 1) -> HubFile:
    return HubFile(name, size, None, None)


def test_a_search_finds_models(hub: HubServer) -> None:
    found = run(search(requests(hub), " name ", 20))
    assert [(one.repository, one.downloads, one.gguf, one.updated) for one in found] == [
        (NAME, 5, True, "2026-01-02")
    ]
    assert run(search(requests(hub), "nothing", 20)) == ()
    assert hub.paths[0] == "/api/models?search=name&limit=20&sort=downloads&direction=-1"


def test_rows_of_a_search_are_not_believed(hub: HubServer) -> None:
    hub.found = [
        1,
        {"id": "../../etc"},
        {
            "id": "a/b",
            "downloads": "many",
            "likes": -1,
            "tags": 5,
            "gated": "auto",
            "lastModified": "\x1b[2J",
        },
        {"id": 7},
    ]
    (only,) = run(search(requests(hub), "x", 20))
    assert (only.repository, only.downloads, only.likes, only.gated) == ("a/b", None, None, True)
    assert "\x1b" not in only.updated
    hub.found = {"error": "x"}
    assert run(search(requests(hub), "x", 20)) == ()
    hub.found = "x" * (17 << 20)
    with pytest.raises(HostError) as caught:
        run(search(requests(hub), "x", 20))
    assert caught.value.reason is Reason.DOWNLOAD_FAILED


def test_files_are_those_of_a_commit(hub: HubServer) -> None:
    hub.repositories[NAME].more = {"cardData": {"license": "apache-2.0"}}
    found = run(list_files(requests(hub), NAME, "main"))
    assert (found.commit, found.licence, found.gated) == (COMMIT, "apache-2.0", False)
    large = next(one for one in found.files if one.name == "a-Q4_K_M.gguf")
    assert large.sha256 is not None
    assert large.git_id is None


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../x.gguf",
        "a/../../x.gguf",
        "a//b",
        "a/./b",
        "a\\b.gguf",
        "C:x.gguf",
        ".git/config",
        "a/.hidden.gguf",
        "x\0.gguf",
        "x\n.gguf",
        "\u202egguf.x",
        "x.gguf ",
        "x.incomplete",
        "",
        "a/" * 300,
        "ä" * 150,
    ],
)
def test_names_that_lead_elsewhere_are_left_out(hub: HubServer, name: str) -> None:
    assert not is_safe(name)
    hub.repositories[NAME].rows = [{"rfilename": name, "size": 1}, {"rfilename": "ok.gguf", "size": 1}]
    assert [one.name for one in run(list_files(requests(hub), NAME, "main")).files] == ["ok.gguf"]


def test_sizes_and_hashes_are_not_believed(hub: HubServer) -> None:
    hub.repositories[NAME].rows = [
        {"rfilename": "a.gguf", "size": -1},
        {"rfilename": "b.gguf", "size": 1 << 61},
        {"rfilename": "c.gguf", "size": "5"},
        {"rfilename": "d.gguf"},
        {"rfilename": "e.gguf", "size": True},
        {"rfilename": "f.gguf", "size": 5, "lfs": {"sha256": "../../x"}, "blobId": "zz"},
        {"rfilename": "F.gguf", "size": 5},
        "g.gguf",
    ]
    (only,) = run(list_files(requests(hub), NAME, "main")).files
    assert only == HubFile("f.gguf", 5, None, None)


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (401, "GatedRepo", Reason.UNAUTHORIZED),
        (403, "GatedRepo", Reason.UNAUTHORIZED),
        (404, "RevisionNotFound", Reason.NOT_FOUND),
        (404, "", Reason.NOT_FOUND),
        (429, "", Reason.RATE_LIMITED),
        (500, "", Reason.DOWNLOAD_FAILED),
    ],
)
def test_each_refusal_has_a_reason_and_a_next_action(
    hub: HubServer, status: int, code: str, reason: Reason
) -> None:
    hub.repositories[NAME].status, hub.repositories[NAME].code = status, code
    with pytest.raises(HostError) as caught:
        run(list_files(requests(hub), NAME, "main"))
    assert caught.value.reason is reason
    assert caught.value.problem.fix is not None
    if status == 429:
        assert "7 seconds" in caught.value.problem.fix.text


@pytest.mark.parametrize("revision", ["../x", "/etc", "a//b", ".", "a b", ""])
def test_what_is_no_revision_is_not_sent(hub: HubServer, revision: str) -> None:
    with pytest.raises(HostError) as caught:
        run(list_files(requests(hub), NAME, revision))
    assert (caught.value.reason, hub.requests) == (Reason.BAD_REQUEST, [])


def test_a_commit_is_needed_and_is_the_one_that_was_asked_for(hub: HubServer) -> None:
    hub.repositories[NAME].more = {"sha": "f" * 40}
    with pytest.raises(HostError) as caught:
        run(list_files(requests(hub), NAME, COMMIT))
    assert caught.value.reason is Reason.CONFLICT
    hub.repositories[NAME].more = {"sha": "../../x"}
    with pytest.raises(HostError) as caught:
        run(list_files(requests(hub), NAME, "main"))
    assert caught.value.reason is Reason.MODEL_FILE_DAMAGED


def test_offline_nothing_is_sent(hub: HubServer) -> None:
    with pytest.raises(HostError) as caught:
        run(search(requests(hub, HF_HUB_OFFLINE="1"), "x", 5))
    assert (caught.value.reason, hub.requests) == (Reason.OFFLINE, [])


def test_quantisations_are_choices_with_their_parts_and_companions() -> None:
    found = choices_of(
        [
            file("M-Q4_K_M.gguf", 4),
            file("Q8_0/M-Q8_0-00001-of-00002.gguf", 5),
            file("Q8_0/M-Q8_0-00002-of-00002.gguf", 4),
            file("BF16/M-BF16-00001-of-00003.gguf", 9),
            file("mmproj-F16.gguf", 1),
            file("M-imatrix.gguf", 1),
            file("M-UD-IQ2_XXS.gguf", 2),
            file("plain.gguf", 3),
            file("M-draft-Q4_0.gguf", 1),
        ]
    )
    assert [(one.label, one.size, len(one.files)) for one in found] == [
        ("UD-IQ2_XXS", 2, 1),
        ("plain", 3, 1),
        ("Q4_K_M", 4, 1),
        ("Q8_0", 9, 2),
    ]
    assert {tuple(kind for kind, _file in one.companions) for one in found} == {("mmproj", "drafter")}
    assert found[3].start == "Q8_0/M-Q8_0-00001-of-00002.gguf"


def test_a_checkpoint_is_its_weights_with_what_reads_them() -> None:
    names = """
        config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors tokenizer.json
        tokenizer.model consolidated.safetensors modeling_x.py README.md original/params.json merges.txt
        chat_template.jinja adapter_model.safetensors LICENSE
    """
    (only,) = choices_of([file(name) for name in names.split()])
    assert {one.name for one in only.files} == {
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "tokenizer.json",
        "tokenizer.model",
        "merges.txt",
        "chat_template.jinja",
        "LICENSE",
    }
    assert choices_of([file("model.safetensors")]) == ()
