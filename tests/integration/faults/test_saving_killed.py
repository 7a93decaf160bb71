"""kill -9 of somebody who saves, again and again: a file is the old or the new one, and nothing piles up."""

import os
import subprocess
import sys
import time
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.settings import SettingsFile

SAVES = """
import sys
from pathlib import Path
from engine_host.core.settings import SettingsFile
file = SettingsFile(Path(sys.argv[1]))
file.load()
print("saving", flush=True)
number = 0
while True:
    number += 1
    file.change({"endpoint.queue_limit": 10 + number % 50, "host.log_level": ("info", "debug")[number % 2]})
"""


def test_a_file_is_whole_whoever_is_killed(home: Path) -> None:
    path = home / "settings.toml"
    path.write_text("# by hand\n[endpoint]\nport = 8123\n", encoding="utf-8")
    for turn in range(6):
        saver = subprocess.Popen([sys.executable, "-c", SAVES, str(path)], stdout=subprocess.PIPE)
        assert saver.stdout is not None
        assert saver.stdout.readline() == b"saving\n"
        time.sleep(0.02 + 0.013 * turn)
        saver.kill()
        saver.communicate()
        read = SettingsFile(path)
        read.load()
        assert read.current.endpoint.port == 8123
        assert path.read_text(encoding="utf-8").startswith("# by hand\n")
    left = [other for other in home.iterdir() if other != path and other.name.startswith(".settings.toml.")]
    assert len(left) <= 6
    for other in left:
        os.utime(other, (1, 1))
    atomic_file.write(path, path.read_bytes())
    assert [other for other in home.iterdir() if other.name.startswith(".settings.toml.")] == []
