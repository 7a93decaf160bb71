"""`sndr autopsy` against a host of canned answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_host.cli.autopsy.lines import record_lines
from engine_host.core.diagnosis.reading import read
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.paths import Folders
from engine_host.protocol.bench.autopsy import AutopsyEntry, AutopsyPage, OpenedAutopsy, UnreadableAutopsy
from engine_host.protocol.errors import Reason
from tests.unit.cli.fake_host import FakeHost
from tests.unit.core.diagnosis.samples import ID, problem, record, series

Sndr = Callable[..., tuple[int, str, str]]
OTHER = "20260102-030405-bbbbbb"


def entry(**fields: Any) -> AutopsyEntry:
    made = record()
    reading = read(made)
    plain = {
        "id": ID,
        "at": made.at,
        "engine": "engine-1",
        "name": "demo",
        "model": "m",
        "ending": reading.ending,
        "sentence": reading.sentence,
        "bytes": 10,
    }
    return AutopsyEntry.model_validate(plain | fields)


def listed(host: FakeHost, *found: AutopsyEntry, unreadable: tuple[UnreadableAutopsy, ...] = ()) -> None:
    page = AutopsyPage(seq=0, folder="/f", autopsies=found, unreadable=unreadable)
    host.answers["GET /v1/autopsies"] = (200, page.model_dump(mode="json"))


def test_without_any_it_says_when_there_will_be(host: FakeHost, sndr: Sndr) -> None:
    listed(host)
    assert "No engine died." in sndr("autopsy")[1]
    assert sndr("autopsy", ID)[0] == 4
    assert sndr("autopsy", "--remove")[0] == 2


def test_a_refused_start_is_no_engine_that_died(host: FakeHost, sndr: Sndr) -> None:
    listed(host, entry(ending="refused", sentence="Its file is missing."))
    out = sndr("autopsy")[1]
    assert "No engine died." in out
    assert out.index("Starts that were refused:") < out.index("Its file is missing.")
    listed(host, entry(), entry(id=OTHER, ending="refused", sentence="Its file is missing."))
    out = sndr("autopsy")[1]
    assert "No engine died." not in out
    assert out.index(ID) < out.index("Starts that were refused:") < out.index(OTHER)


def test_one_is_found_by_its_beginning_or_its_engine(host: FakeHost, sndr: Sndr) -> None:
    listed(host, entry(), entry(id=OTHER, name="other"))
    made = record(
        exit_code=-9,
        signal="SIGKILL",
        series=(series("ram.used", 1.0, 2.0),),
        engine={"last_lines": ["the \x1b[31mend"], "buffers": {"CPU KV": 1 << 20}},
    )
    opened = OpenedAutopsy(record=made, reading=read(made))
    host.answers[f"GET /v1/autopsies/{ID}"] = (200, opened.model_dump(mode="json"))
    for said in (ID, ID[:-3], "demo", "engine-1"):
        code, out, _ = sndr("autopsy", said)
        assert code == 0
        assert "1.0 MiB  CPU KV (the engine's log)" in out
        assert "ram.used: 1 B → 2 B in the last 1.0 s" in out
        assert "\x1b" not in out
    code, _, err = sndr("autopsy", "2026")
    assert code == 6
    assert "beginning of 2 records" in err


def test_what_cannot_be_read_is_listed_and_removed(host: FakeHost, sndr: Sndr) -> None:
    listed(host, unreadable=(UnreadableAutopsy(id=OTHER, why="it is \x1b[31mnot JSON."),))
    out = sndr("autopsy")[1]
    assert f"{OTHER}  cannot be read" in out
    assert "\x1b" not in out
    host.answers[f"DELETE /v1/autopsies/{OTHER}"] = host.answers["GET /v1/autopsies"]
    assert f"Removed {OTHER}." in sndr("autopsy", OTHER, "--remove")[1]


def test_without_a_host_the_files_are_read(home: Path, sndr: Sndr) -> None:
    code, out, err = sndr("autopsy")
    assert (code, "No engine died." in out) == (0, True)
    code, _, err = sndr("autopsy", "latest")
    assert (code, "No engine died that is on record." in err) == (4, True)
    shelf = AutopsyShelf(Folders.resolve().autopsies)
    shelf.save(record())
    (shelf.folder / f"{OTHER}.json").write_text("\x1b[2J{")
    code, out, err = sndr("autopsy")
    assert code == 0
    assert f"{ID}  " in out
    assert f"{OTHER}  cannot be read" in out
    assert "\x1b" not in out
    assert "No engine host runs" in err
    assert "What held memory" not in sndr("autopsy")[1]
    assert "died" in sndr("autopsy", ID)[1]
    assert sndr("autopsy", "latest") == sndr("autopsy", ID)
    assert sndr("autopsy", OTHER, "--remove")[0] == 0
    assert sndr("autopsy", "../x")[0] == 4
    assert shelf.ids() == [ID]
    assert sndr("--host", "elsewhere", "autopsy")[0] != 0, "another machine's are not here"


def test_a_refused_start_is_told_without_what_a_process_would_have_left() -> None:
    def told(reason: Reason) -> str:
        made = record(
            engine={"ready_at": None, "problem": problem(reason)}, series=(series("ram.used", 1.0, 2.0),)
        )
        return "\n".join(record_lines(OpenedAutopsy(record=made, reading=read(made))))

    damaged, no_room = told(Reason.NOT_GGUF), told(Reason.OUT_OF_MEMORY)
    for said in (damaged, no_room):
        assert "demo (e) was refused its start" in said
        assert "Do less." in said
        assert "The curves" not in said
        assert "No request" not in said
        assert "Not measured" not in said
    assert "What held memory" in no_room
    assert "What held memory" not in damaged


def test_a_count_stands_for_itself_and_is_no_plural() -> None:
    made = record(series=(series("engine.e.requests.running", 0.0, 1.0, 1.0, unit="requests"),))
    said = "\n".join(record_lines(OpenedAutopsy(record=made, reading=read(made))))
    assert "0 → 1 in the last" in said
    assert "requests in the last" not in said
