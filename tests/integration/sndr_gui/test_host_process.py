"""The process of the host, as the window starts it."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from engine_host.client import Folders
from sndr_gui.host.process import HostProcess, HostStartFailed


def _host(home: Path, program: str) -> HostProcess:
    return HostProcess(Folders.resolve({"SNDR_HOME": str(home)}), [sys.executable, "-c", program])


def test_host_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = "import sys; print('the disk is full', file=sys.stderr); sys.exit(7)"
    with pytest.raises(HostStartFailed, match="exit code 7") as caught:
        asyncio.run(_host(tmp_path, program).find_or_start())
    assert caught.value.tail == ("the disk is full",)


def test_host_that_refuses_to_serve_is_told_in_its_own_words(tmp_path: Path) -> None:
    # Where nothing can be written there is no log either.
    home = tmp_path / "file"
    home.write_text("", encoding="utf-8")
    said = {"error": {"reason": "disk_full", "message": "The disk is full.", "fix": {"text": "Free some."}}}
    program = f"print({json.dumps(json.dumps(said))}); raise SystemExit(7)"
    with pytest.raises(HostStartFailed, match=r"The disk is full\. Free some\."):
        asyncio.run(_host(home, program).find_or_start())


def test_host_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    host = HostProcess(Folders.resolve({"SNDR_HOME": str(tmp_path)}), [str(tmp_path / "missing")])
    with pytest.raises(HostStartFailed, match="could not be started"):
        asyncio.run(host.find_or_start())


def test_host_is_waited_for_then_ended(tmp_path: Path) -> None:
    program = (
        "import json, pathlib, sys; p = pathlib.Path(sys.argv[0] or '.');"
        f"t = pathlib.Path({str(tmp_path / 'token')!r}); t.write_text('secret');"
        "print('noise', flush=True);"
        "print(json.dumps({'event': 'serving', 'socket': '/s', 'token_file': str(t)}), flush=True);"
        "sys.stdin.read()"
    )

    async def work() -> None:
        host = _host(tmp_path, program)
        address = await host.find_or_start()
        assert (address.socket, address.token, address.owned) == ("/s", "secret", True)
        assert host.owned
        await host.finish(asked=False)
        assert not host.owned

    asyncio.run(work())


def test_host_that_stays_is_left_running(tmp_path: Path) -> None:
    done = tmp_path / "done"
    program = (
        "import json, pathlib, sys, time;"
        f"t = pathlib.Path({str(tmp_path / 'token')!r}); t.write_text('secret');"
        "print(json.dumps({'event': 'serving', 'socket': '/s', 'token_file': str(t)}), flush=True);"
        f"sys.stdin.read(); time.sleep(0.2); pathlib.Path({str(done)!r}).write_text('went on')"
    )

    async def work() -> None:
        host = _host(tmp_path, program)
        await host.find_or_start()
        process = host._process
        assert process is not None
        host.let_go()
        assert not host.owned
        await host.finish(asked=False)
        while process.poll() is None:  # noqa: ASYNC110 - Popen offers no event to wait for
            await asyncio.sleep(0.02)
        assert process.returncode == 0

    asyncio.run(work())
    assert done.read_text() == "went on"


def test_host_begins_before_the_window_where_none_can_run(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    program = (
        "import json, pathlib, sys;"
        f"b = pathlib.Path({str(begun)!r}); b.open('a').write('x');"
        f"t = pathlib.Path({str(tmp_path / 'token')!r}); t.write_text('secret');"
        "print(json.dumps({'event': 'serving', 'socket': '/s', 'token_file': str(t)}), flush=True);"
        "sys.stdin.read()"
    )
    host = _host(tmp_path, program)
    host.begin()
    assert host.owned

    async def work() -> None:
        try:
            assert (await host.find_or_start()).socket == "/s"
            assert begun.read_text() == "x", "the one that was begun, and no second one"
        finally:
            await host.finish(asked=False)

    asyncio.run(work())


def test_host_does_not_begin_where_one_may_run(tmp_path: Path) -> None:
    host = _host(tmp_path, "import sys; sys.exit(7)")
    token = host._folders.token
    token.parent.mkdir(parents=True, mode=0o700)
    token.write_text("of a host", encoding="utf-8")
    host.begin()
    assert host._process is None


def test_one_that_cannot_begin_is_told_by_who_wants_it(tmp_path: Path) -> None:
    host = HostProcess(Folders.resolve({"SNDR_HOME": str(tmp_path)}), [str(tmp_path / "missing")])
    host.begin()
    with pytest.raises(HostStartFailed, match="could not be started"):
        asyncio.run(host.find_or_start())
