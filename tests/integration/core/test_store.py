"""The store of a process that is killed while it writes."""

import signal
import subprocess
import sys
from pathlib import Path

from engine_host.core.store import Store


def test_a_kill_while_writing_loses_nothing_that_was_answered(home: Path) -> None:
    path = home / "data" / "sndr.sqlite"
    program = (
        "import sys; from pathlib import Path; from engine_host.core.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for number in range(10**6):\n"
        "    store.put('job', str(number), float(number), 'x' * 200)\n"
        "    print(number, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    seen = -1
    for line in child.stdout:
        seen = int(line)
        if seen == 50:
            child.send_signal(signal.SIGKILL)
    child.stdout.close()
    child.wait(timeout=10)
    assert seen >= 50
    store = Store(path)
    assert all(store.get("job", str(number)) == "x" * 200 for number in range(seen + 1))
    store.close()
