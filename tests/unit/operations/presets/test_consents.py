"""Consent to a file from somebody else: for these contents, before it is taken in and before it starts."""

from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents, Trust, sha256
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.presets import ImportPreset, SavePreset
from tests.unit.asynchronous import run

HARMLESS = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096\n"
FOREIGN = HARMLESS + "  extra_arguments: [--log-prompts-dir, /tmp/prompts, --made-up]\n"


class Desk:
    """The catalogue that ships, a person's own presets, and what they have consented to."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "own"
        self.folder.mkdir()
        self.events = EventLog()
        self.presets = PresetOperations(
            presets, self.folder, SettingsFile(home / "settings.toml"), self.events, lambda: ()
        )
        self.store = Store(home / "store.sqlite")
        self.consents = PresetConsents(self.store)
        self.own = OwnPresetOperations(self.presets, self.consents)

    def put(self, text: str, name: str = "mine") -> None:
        """Write a file as somebody does who copies it there."""
        (self.folder / f"{name}.yaml").write_text(text)

    def save(self, text: str, name: str = "mine") -> None:
        """Save it as the editor does."""
        path = self.folder / f"{name}.yaml"
        digest = run(self.own.file(name)).digest if path.exists() else None
        run(self.own.save(name, SavePreset(text=text, digest=digest)))

    def take_in(self, text: str, **fields: Any) -> None:
        run(self.own.take_in(ImportPreset(text=text, **fields)))

    def refused(self, text: str, **fields: Any) -> Problem:
        with pytest.raises(HostError) as caught:
            self.take_in(text, **fields)
        return caught.value.problem

    def needed(self, name: str = "mine") -> ConsentNeeded | None:
        return self.consents.to_start(run(self.presets.catalog()), name, None)

    def consent(self, name: str = "mine") -> None:
        needed = self.needed(name)
        assert needed is not None
        self.consents.check(needed, needed.digest, "it", "sndr launch")

    def exported(self, text: str = FOREIGN) -> str:
        """What somebody else exports."""
        self.put(text)
        made = run(self.own.export("mine")).text
        (self.folder / "mine.yaml").unlink()
        return made


@pytest.fixture
def desk(home: Path) -> Any:
    found = Desk(home)
    yield found
    found.store.close()
    found.events.close()


def test_what_ships_and_what_is_harmless_needs_none(desk: Desk) -> None:
    assert desk.needed("demo-llamacpp") is None
    assert desk.needed("diffusiongemma-26b-a4b-2x24") is None, "its flags are the program's own"
    desk.put(HARMLESS)
    assert desk.needed() is None
    text = desk.exported(HARMLESS)
    desk.take_in(text)
    assert desk.needed() is None


def test_what_a_person_saves_is_their_own(desk: Desk) -> None:
    desk.save(FOREIGN)
    assert desk.needed() is None
    desk.save(FOREIGN.replace("4096", "2048"))
    assert desk.needed() is None


def test_a_file_that_is_copied_there_is_somebody_elses(desk: Desk) -> None:
    desk.put(FOREIGN)
    needed = desk.needed()
    assert needed is not None
    assert [one.what for one in needed.demands] == ["--log-prompts-dir /tmp/prompts", "--made-up"]
    assert needed.digest == sha256(FOREIGN), "as sha256sum prints it"
    with pytest.raises(HostError) as caught:
        desk.consents.check(needed, None, "its first start", "sndr launch mine")
    problem = caught.value.problem
    assert problem.reason is Reason.CONSENT_NEEDED
    assert ConsentNeeded.model_validate(problem.evidence) == needed
    assert problem.fix is not None
    assert problem.fix.command == f"sndr launch mine --accept {needed.digest}"


def test_consent_is_for_these_contents_and_remembered(desk: Desk) -> None:
    desk.put(FOREIGN)
    desk.consent()
    assert desk.needed() is None
    changed = FOREIGN.replace("--made-up", "--lora")
    desk.put(changed + "\n")
    needed = desk.needed()
    assert needed is not None
    with pytest.raises(HostError):
        desk.consents.check(needed, sha256(FOREIGN), "it", "sndr launch mine")
    desk.put(FOREIGN + "# \n")
    assert desk.needed() is not None, "whatever changed"


def test_a_preset_that_extends_a_foreign_one_needs_the_same(desk: Desk) -> None:
    whole = run(desk.own.file("demo-llamacpp")).text
    base = whole.replace("id: demo-llamacpp", "id: base").replace(
        "settings:\n", "settings:\n  extra_arguments: [--rpc, '10.0.0.1:1']\n", 1
    )
    desk.put(base, "base")
    desk.save(HARMLESS.replace("demo-llamacpp", "base"))
    needed = desk.needed()
    assert needed is not None
    assert [one.what for one in needed.demands] == ["--rpc 10.0.0.1:1"]


def test_an_import_needs_consent_and_so_does_the_first_start(desk: Desk) -> None:
    text = desk.exported()
    problem = desk.refused(text)
    assert problem.reason is Reason.CONSENT_NEEDED
    assert problem.evidence["digest"] == sha256(text)
    assert [one["what"] for one in problem.evidence["demands"]] == [
        "--log-prompts-dir /tmp/prompts",
        "--made-up",
    ]
    assert list(desk.folder.iterdir()) == [], "nothing was written"
    assert desk.refused(text, consent=sha256("another")).reason is Reason.CONSENT_NEEDED
    desk.take_in(text, consent=sha256(text))
    assert desk.needed() is not None, "consent to taking it in is none to starting it"
    desk.consent()
    assert desk.needed() is None
    run(desk.own.remove("mine"))
    desk.take_in(text)
    assert desk.needed() is None, "the same contents again"
    run(desk.own.remove("mine"))
    assert desk.refused(text.replace("/tmp/prompts", "/tmp/other")).reason is Reason.CONSENT_NEEDED


def test_saving_a_foreign_text_is_no_consent(desk: Desk) -> None:
    desk.put(FOREIGN)
    desk.save(FOREIGN.replace("4096", "2048"))
    assert desk.needed() is not None
    desk.save(FOREIGN.replace("id: mine", "id: copy"), "copy")
    assert desk.needed("copy") is not None
    desk.save(HARMLESS)
    assert desk.needed() is None
    text = desk.exported(FOREIGN.replace("id: mine", "id: mine").replace("--made-up", "--lora"))
    desk.take_in(text, consent=sha256(text), id="taken")
    taken = run(desk.own.file("taken")).text
    desk.save(taken.replace("4096", "1024"), "taken")
    assert desk.needed("taken") is not None


def test_removing_and_bringing_back_is_no_consent(desk: Desk) -> None:
    desk.put(FOREIGN)
    removed = run(desk.own.remove("mine"))
    desk.save(removed.previous or "")
    assert desk.needed() is not None


def test_mending_a_foreign_file_that_cannot_be_used_is_no_consent(desk: Desk) -> None:
    desk.put(FOREIGN.replace("context: 4096", "context: many"))
    desk.save(FOREIGN)
    assert desk.needed() is not None
    desk.put(FOREIGN.replace("context: 4096", "context: many"), "other")
    removed = run(desk.own.remove("other"))
    assert desk.consents.trust(removed.previous or "") is Trust.FOREIGN


def test_trust_is_never_taken_back(desk: Desk) -> None:
    desk.consents.note("a", Trust.TRUSTED)
    desk.consents.note("a", Trust.FOREIGN)
    desk.consents.removed("a")
    assert desk.consents.trust("a") is Trust.TRUSTED
    assert desk.consents.trust("b") is None
