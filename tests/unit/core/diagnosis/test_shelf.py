"""The folder of records: whole files, bounded, and nothing in it can stop the list."""

import json
import os
from pathlib import Path

import pytest

from engine_host.core.diagnosis.shelf import LARGEST, MOST_RECORDS, AutopsyShelf
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.operations.autopsies.operations import AutopsyOperations
from engine_host.protocol.bench.autopsy import AutopsyPage
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run
from tests.unit.core.diagnosis.samples import ID, record, series


def page(shelf: AutopsyShelf) -> AutopsyPage:
    return run(AutopsyOperations(shelf, EventLog()).page())


def test_what_is_saved_is_opened_again(tmp_path: Path) -> None:
    shelf = AutopsyShelf(tmp_path / "new" / "autopsies")
    assert page(shelf).autopsies == ()
    made = record(series=[series("ram.used", 1.0, None, 3.0)])
    shelf.save(made)
    assert shelf.open(ID) == made
    assert [path.name for path in shelf.folder.iterdir()] == [f"{ID}.json"]
    shelf.remove(ID)
    with pytest.raises(HostError) as raised:
        shelf.open(ID)
    assert raised.value.reason is Reason.NOT_FOUND


def test_the_oldest_give_way_but_never_the_one_that_is_written(tmp_path: Path) -> None:
    shelf = AutopsyShelf(tmp_path)
    ids = [f"20260102-0304{second:02}-abcdef" for second in range(MOST_RECORDS + 3)]
    for one in ids:
        shelf.save(record(id=one))
    assert shelf.ids() == ids[: -MOST_RECORDS - 1 : -1]
    # The clock was set back.
    shelf.save(record(id="20010102-030405-abcdef"))
    assert len(shelf.ids()) == MOST_RECORDS
    assert shelf.ids()[-1] == "20010102-030405-abcdef"
    (tmp_path / "notes.txt").write_text("a person's own")
    shelf.save(record(id=ids[-1]))
    assert (tmp_path / "notes.txt").exists()


def test_a_record_that_grew_too_large_loses_the_beginning_of_its_series(tmp_path: Path) -> None:
    shelf = AutopsyShelf(tmp_path)
    many = [series(f"engine.e.acceptance.{place}", *[1 / 3] * 600) for place in range(500)]
    shelf.save(record(series=many))
    assert (tmp_path / f"{ID}.json").stat().st_size <= LARGEST
    kept = shelf.open(ID).series
    assert len(kept) == 500
    assert (kept[0].first, len(kept[0].values)) == (480.0, 120)


def test_hostile_files_are_listed_and_stop_nothing(tmp_path: Path) -> None:
    shelf = AutopsyShelf(tmp_path)
    shelf.save(record())
    good = (tmp_path / f"{ID}.json").read_bytes()

    def put(number: int, content: bytes) -> Path:
        path = tmp_path / f"20260202-0304{number:02}-abcdef.json"
        path.write_bytes(content)
        return path

    put(1, b"{")
    put(2, b"\xff\xfe\x00")
    put(3, b"[" * 100_000)
    put(4, good.replace(b'"format":1', b'"format":2'))
    put(5, json.dumps({**json.loads(good), "engine": {"id": "\x1b[31m"}}).encode())
    put(6, b"null")
    put(7, good.replace(b'"at":700.0', b'"at":NaN'))
    with put(8, b"").open("r+b") as huge:
        huge.truncate(100 << 20)
    (tmp_path / "20260202-030409-abcdef.json").mkdir()
    os.mkfifo(tmp_path / "20260202-030410-abcdef.json")
    (tmp_path / "20260202-030411-abcdef.json").symlink_to("/dev/zero")
    (tmp_path / "..json").write_text("{}")
    (tmp_path / "x.json").write_text("{}")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.json", os.O_CREAT | os.O_WRONLY))

    found = page(shelf)
    assert [one.id for one in found.autopsies] == [ID]
    why = {one.id[9:15]: one.why for one in found.unreadable}
    assert sorted(why) == [f"0304{number:02}" for number in range(1, 12)]
    assert "not JSON" in why["030401"]
    assert "not in the form 1" in why["030404"]
    assert "larger than any such file" in why["030408"]
    assert next(one for one in found.unreadable if one.id[9:15] == "030408").bytes == 100 << 20
    AutopsyPage.model_validate_json(found.model_dump_json())

    shelf.remove("20260202-030410-abcdef")
    with pytest.raises(HostError) as raised:
        shelf.remove("20260202-030409-abcdef")
    assert raised.value.reason is Reason.NOT_WRITABLE
    assert len(page(shelf).unreadable) == 10


@pytest.mark.parametrize(
    "autopsy", ["../../etc/passwd", "", ".", ID + "\n", f"{ID}.json", "\0", "٢" * 8 + ID[8:]]
)
def test_an_id_that_is_none_leads_nowhere(autopsy: str, tmp_path: Path) -> None:
    shelf = AutopsyShelf(tmp_path)
    shelf.save(record())
    for use in (shelf.open, shelf.remove):
        with pytest.raises(HostError) as raised:
            use(autopsy)
        assert raised.value.reason is Reason.NOT_FOUND
    assert shelf.ids() == [ID]
