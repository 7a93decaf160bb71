"""Settings, keys and the claim of a data folder, as nobody should write them."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st

from engine_host.core.keys.plain import read_api_keys
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.operations.setting_checks import doubts
from engine_host.protocol.launch.plans import Setting
from tests.hostile.effort import clear, fuzz, linear
from tests.hostile.making.text import long_words, words
from tests.hostile.making.toml import changed
from tests.hostile.making.values import values

pytestmark = pytest.mark.fuzz
SOUND = """\
# mine
[endpoint]
host = "127.0.0.1"
port = 8020
allowed_hosts = ["box.example.org"]
queue_limit = 64
[models]
folders = ["~/models"]
other_programs = true
[engine]
server = "auto"
streams = 8
context = 4096
[patches]
off = ["a"]
[host]
log_level = "info"
"""
_lines = SOUND.splitlines()
texts = st.one_of(
    changed(SOUND),
    words,
    st.lists(
        st.sampled_from([*_lines, "[a.b]", "[[endpoint]]", "endpoint = 1", "a.b.c = 1"]), max_size=8
    ).map("\n".join),
)
NAMES = (
    "endpoint.host",
    "endpoint.port",
    "models.folders",
    "engine.context",
    "patches.on",
    "a",
    "a.b",
    "",
    ".",
    "a.b.c",
)


def test_settings() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.toml"

        def check(made: tuple[str, str, object]) -> None:
            text, name, value = made
            path.write_text(text, encoding="utf-8", errors="replace")
            file = SettingsFile(path)
            clear(file.load)
            for one in file.settings():
                assert Setting.model_validate_json(one.model_dump_json()) == one
            clear(lambda: file.change({name: value}))
            clear(lambda: file.change({name: None}))
            clear(file.load)

        fuzz("settings.toml", st.tuples(texts, st.sampled_from(NAMES), values), check)


def test_what_was_set_and_means_nothing() -> None:
    def check(made: object) -> None:
        for name in ("models.folders", "patches.off", "patches.on"):
            for found in doubts({name: made}, Path("/nowhere")):
                found.model_dump_json()

    fuzz("doubts about settings", st.one_of(st.lists(words, max_size=3), values), check, usual=0.5)


def test_keys_and_claims() -> None:
    with tempfile.TemporaryDirectory() as folder:
        folders = Folders.resolve({"SNDR_HOME": folder})
        folders.data.mkdir()
        folders.config.mkdir()

        def check(content: bytes) -> None:
            keys = folders.config / "api-keys"
            keys.write_bytes(content)
            keys.chmod(0o600)
            clear(lambda: read_api_keys(folders.config))
            folders.data_lock.write_bytes(content)
            folders.elsewhere()

        one = st.one_of(st.binary(max_size=80), long_words.map(lambda word: word.encode("utf-8", "replace")))
        fuzz("api-keys, host.claim", one, check, usual=0.5)


def test_settings_take_time_by_their_length(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"

    def of(size: int) -> object:
        path.write_text("[models]\nfolders = [" + '"a", ' * size + "]\n")
        return lambda: SettingsFile(path).load()

    linear(of, 500)  # type: ignore[arg-type]
