"""Routes in the database: made, moved, taken back, and read again by the next host."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.gateway.routing.book import MOST, RouteBook
from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from engine_host.protocol.errors import Reason

TO_A, TO_B = RouteTargets(engines=("a",)), RouteTargets(engines=("b",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database."""
    opened = Store(tmp_path / "host.db")
    yield opened
    opened.close()


def test_a_route_outlives_the_host(store: Store) -> None:
    RouteBook(store).put("coder", TO_A)
    again = RouteBook(store)
    assert again.get("coder").targets == TO_A
    again.remove("coder")
    assert RouteBook(store).saved == {}


def test_back_and_forth(store: Store) -> None:
    book = RouteBook(store)
    book.put("coder", TO_A)
    with pytest.raises(HostError) as refused:
        book.back("coder")
    assert refused.value.reason is Reason.CONFLICT
    book.put("coder", TO_B)
    assert book.back("coder").targets == TO_A
    assert book.back("coder").targets == TO_B
    assert RouteBook(store).get("coder").before == TO_A


def test_the_same_again_keeps_where_it_led_before(store: Store) -> None:
    book = RouteBook(store)
    book.put("coder", TO_A)
    book.put("coder", TO_B)
    assert book.put("coder", TO_B).before == TO_A


def test_an_attempt_is_found_and_neither_saved_nor_listed(store: Store) -> None:
    book = RouteBook(store)
    book.attempt("coder.trial-1", TO_A)
    assert book.find("coder.trial-1") is not None
    assert book.saved == {}
    assert RouteBook(store).find("coder.trial-1") is None
    book.end_attempt("coder.trial-1")
    assert book.find("coder.trial-1") is None


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", '{"id": "a/b", "targets": {"engines": ["a"]}, "changed_at": 1}',
     '{"id": "a", "targets": {"engines": []}, "changed_at": 1}',
     '{"id": "a", "targets": {"engines": ["a"]}, "changed_at": 1e99}',
     '{"id": "a", "targets": {"provider": {"url": "http://192.0.2.1", "model": "m", "context": 512}},'
     ' "changed_at": 1}'],
)  # fmt: skip
def test_what_is_no_route_is_left_out(store: Store, body: str) -> None:
    store.put("route", "a", time.time(), body)
    assert RouteBook(store).saved == {}


def test_nobody_makes_more_than_can_be_looked_through(store: Store) -> None:
    book = RouteBook(store)
    for number in range(MOST):
        book.put(f"r{number}", TO_A)
    with pytest.raises(HostError) as refused:
        book.put("one-more", TO_A)
    assert refused.value.reason is Reason.CONFLICT
    book.put("r0", TO_B)


def test_an_id_or_an_address_that_cannot_be_used_is_refused(store: Store) -> None:
    book = RouteBook(store)
    with pytest.raises(HostError):
        book.put("a:b", TO_A)
    provider = Provider(url="http://example.com/v1", model="m", context=4096)
    with pytest.raises(HostError):
        book.put("a", RouteTargets(provider=provider))
    assert book.saved == {}
