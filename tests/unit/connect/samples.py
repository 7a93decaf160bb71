"""A machine below a folder of a test, and facts of an endpoint that is not there."""

from pathlib import Path

from engine_host.connect.facts import Facts
from engine_host.connect.machine import Machine

URL = "http://127.0.0.1:8020/v1"
FACTS = Facts(URL, "qwen", 65_536, key_needed=False)
WITH_KEY = Facts("https://box.example.org/llm/v1", "qwen", 65_536, key_needed=True, images=True)


def machine(home: Path, system: str = "linux", **env: str) -> Machine:
    """A machine with nothing installed and this home folder."""
    return Machine(home, system, env, which=lambda _name: None)
