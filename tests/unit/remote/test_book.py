"""The hosts that are kept, and what no host may be called."""

import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    ChangeRemoteHost,
    RemoteEngine,
    RemoteFacts,
    is_address,
)
from engine_host.remote.book import HostBook, KeptHost


def test_a_host_is_kept_changed_and_forgotten(home: Path) -> None:
    store = Store(home / "db")
    book = HostBook(store)
    book.add(AddRemoteHost(name="gpu", destination="me@gpu"))
    with pytest.raises(HostError) as taken:
        book.add(AddRemoteHost(name="gpu", destination="other"))
    assert taken.value.reason is Reason.CONFLICT
    assert taken.value.problem.fix is not None
    assert taken.value.problem.fix.command == "sndr host change gpu other"
    book.change("gpu", ChangeRemoteHost(destination="me@gpu2", notes="two\nlines"))
    book.keep_facts(RemoteFacts(host="gpu", kernel="Linux"))
    store.put("remote_host", "odd", 1.0, '{"name": "Odd Name"}')
    again = HostBook(store)
    assert list(again.all) == ["gpu"]
    assert again.get("gpu").destination == "me@gpu2"
    assert again.facts("gpu").kernel == "Linux"
    again.remove("gpu")
    with pytest.raises(HostError) as gone:
        HostBook(store).facts("gpu")
    assert gone.value.reason is Reason.NOT_FOUND
    store.close()


def test_a_fact_of_another_version_does_not_lose_the_host(home: Path) -> None:
    store = Store(home / "db")
    store.put(
        "remote_host",
        "gpu",
        1.0,
        '{"name": "gpu", "destination": "me@gpu", "default_pin": null, "added_at": 1.0, "wanted": true}',
    )
    assert HostBook(store).get("gpu").wanted
    store.close()


def known(book: HostBook, name: str = "gpu") -> tuple[str | None, int]:
    """The kernel in a host's facts, and the number of engines in its profile."""
    return book.facts(name).kernel, len(book.profile(name).engines)


def know(book: HostBook) -> None:
    """Keep facts and a profile."""
    engine = RemoteEngine(kind="vllm", pid=1, user="me", arguments=("vllm", "serve"))
    book.keep_facts(RemoteFacts(host="gpu", kernel="Linux", engines=(engine,)))
    book.keep_profile("gpu", (engine,), ())


@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_known_of_a_removed_host_comes_back_with_it_and_not_with_another(
    home: Path, restarted: bool
) -> None:
    store = Store(home / "db")
    book = HostBook(store)
    for destination, after in (("me@gpu", ("Linux", 1)), ("me@other", (None, 0))):
        book.add(AddRemoteHost(name="gpu", destination="me@gpu"))
        know(book)
        book.remove("gpu")
        book = HostBook(store) if restarted else book
        book.add(AddRemoteHost(name="gpu", destination=destination))
        assert known(book) == after
        book.remove("gpu")
    store.close()


def test_what_is_known_of_a_host_that_was_removed_long_ago_is_forgotten(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(home / "db")
    book = HostBook(store)
    book.add(AddRemoteHost(name="gpu", destination="me@gpu"))
    know(book)
    book.remove("gpu")
    for days, after in ((29, ("Linux", 1)), (31, (None, 0))):
        now = time.time() + days * 86400
        monkeypatch.setattr(time, "time", lambda now=now: now)
        again = HostBook(store)
        again.add(AddRemoteHost(name="gpu", destination="me@gpu"))
        assert known(again) == after
        store.remove("remote_host", "gpu")
    store.close()


def test_at_another_destination_nothing_is_known_of_a_host(home: Path) -> None:
    store = Store(home / "db")
    book = HostBook(store)
    book.add(AddRemoteHost(name="gpu", destination="me@gpu"))
    know(book)
    book.change("gpu", ChangeRemoteHost(destination="me@gpu", notes="new"))
    assert known(book) == ("Linux", 1)
    book.change("gpu", ChangeRemoteHost(destination="me@other"))
    assert known(book) == known(HostBook(store)) == (None, 0)
    store.close()


@pytest.mark.parametrize("folder", ["models", "./models", "../models", "~", "~other/models", "a\n/b"])
def test_a_model_root_is_a_whole_path(folder: str) -> None:
    assert AddRemoteHost(name="a", destination="a", model_root="~/models").model_root == "~/models"
    with pytest.raises(ValidationError):
        AddRemoteHost(name="a", destination="a", model_root=folder)
    if "\n" not in folder:
        # What an earlier version kept does not lose the host.
        assert KeptHost(name="a", destination="a", model_root=folder, added_at=0.0).model_root == folder


@pytest.mark.parametrize(
    "destination",
    [
        "gpu", "me@gpu", "gpu.example.org", "10.0.0.4", "me@::1", "fe80::1%eth0", "ssh://me@gpu:2222",
        "ssh://[::1]:22", "user_1@host-2", "first.last+x@h",
    ],
)  # fmt: skip
def test_what_ssh_takes(destination: str) -> None:
    assert AddRemoteHost(name="a", destination=destination).destination == destination


@pytest.mark.parametrize(
    "destination",
    [
        "", "-oProxyCommand=id", "me@-l", "a b", "a;id", "$(id)", "`id`", "a\nb", "a\0", "gpu:22", "ssh://a/b",
        "127.0.0.1:45171", "root@127.0.0.1:45171", "me@cafe:22", "ssh://[10.0.0.4:22]",
        "a'b", 'a"b', "a|b", "a&b", "../x", "@a", "a@", "ssh://-x", "me;id@gpu", "\u202egpu", "x" * 500,
    ],
)  # fmt: skip
def test_what_no_destination_may_be(destination: str) -> None:
    with pytest.raises(ValidationError):
        AddRemoteHost(name="a", destination=destination)


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "a/b", "..", "local", "a" * 64, "a\n", "gpu:1"])
def test_what_no_name_may_be(name: str) -> None:
    with pytest.raises(ValidationError):
        AddRemoteHost(name=name, destination="gpu")


@pytest.mark.parametrize("address", ["", "a b", "-x", "1.2.3.4; id", "1.2.3.4\n5.6.7.8"])
def test_what_no_command_may_say_is_an_address(address: str) -> None:
    assert not is_address(address)
