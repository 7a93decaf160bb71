"""What follows a host (`logs -f`, `events -f`, `top`) ends with a sentence of its own when the host ends."""

from contextlib import ExitStack

from engine_host.core.paths import Folders
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import RunningHost
from tests.integration.host_process import Ended, sndr, started

FOLLOWERS = [
    ("logs", "--follow", "--json"),
    ("logs", "--follow", "--json"),
    ("events", "--follow", "--json"),
    ("top", "--json", "--interval", "0.2"),
]


def test_each_ends_with_a_clear_sentence_and_the_host_without_a_fault(host: RunningHost) -> None:
    host.start()
    # A command that is at work would be waited for; those that go on until Ctrl+C are not.
    with ExitStack() as stack:
        processes = [stack.enter_context(started(*words)) for words in FOLLOWERS]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("{")
        assert sndr("quit").code == 0
        for words, process in zip(FOLLOWERS, processes, strict=True):
            out, err = process.communicate(timeout=60)
            told = Ended(process.returncode, out, err).problem()
            assert (process.returncode, told["reason"]) == (3, "host_gone"), words
            assert told["message"] in {"The engine host has ended.", "The engine host is ending."}, words
            assert told["fix"]["command"] == "sndr logs host", words
    host.process.wait(20)
    written = (Folders.resolve().data / "logs" / "host.log").read_text()
    assert "Traceback" not in written
    assert "cut off" not in written


def test_one_that_only_watches_is_not_named_as_at_work(host: RunningHost) -> None:
    watching = host.client.again()
    with watching:
        watching.only_watch()
        watching.call(ops.HOST)
        assert watching._http is not None
        assert not [name for name in watching._http.headers if name.startswith("x-sndr")]
