"""Hosts: its states, its cards, and the commands that its buttons send; a FAKE host tells of the machines."""

import time
from typing import Any

import pytest

from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import JobDoneEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.remote.hosts import (
    HostCandidate,
    RemoteDisk,
    RemoteEngine,
    RemoteFacts,
    RemoteGpu,
    RemoteHost,
    RemoteHostState,
)
from sndr_gui.host.notices import Notice
from sndr_gui.models.hosts.form import HostForm, suggested_name
from sndr_gui.views.hosts.page import HostsView
from tests.views.conftest import Stage

GIB = 1 << 30


def remote(name: str = "gpu", **more: Any) -> RemoteHost:
    return RemoteHost(**{"name": name, "destination": f"me@{name}.example", "mode": "agentless", **more})


def facts(**more: Any) -> RemoteFacts:
    now = time.time()
    known: dict[str, Any] = {
        "host": "gpu",
        "read_at": {"gpus": now, "engines": now},
        "gpus": (
            RemoteGpu(index=0, uuid="a", name="NVIDIA L4", memory_total=24 * GIB),
            RemoteGpu(index=1, uuid="b", name="NVIDIA L4", memory_total=24 * GIB),
        ),
        "engines": (RemoteEngine(kind="vLLM", pid=7, user="me", arguments=(), listens=("0.0.0.0:8000",)),),
        "disks": (
            RemoteDisk(device="sda1", mount="/", total=GIB, free=GIB // 2, is_root=True, holds_models=True),
        ),
    }
    return RemoteFacts(**{**known, **more})


def view(stage: Stage) -> HostsView:
    stage.window.go("hosts")
    page = stage.window.page
    assert isinstance(page, HostsView)
    return page


async def test_with_this_machine_alone_the_page_says_what_hosts_are_for(stage: Stage) -> None:
    page = view(stage)
    assert page._empty.isVisible()
    assert "your own ssh" in page._empty.sentence.text()
    await stage.until(lambda: page.subtitle.text() == "only this machine")
    assert list(page.cards) == [""]


async def test_a_host_is_added_with_its_name_suggested_and_what_is_wrong_said(stage: Stage) -> None:
    stage.host.candidates = (
        HostCandidate(destination="L4-Box", suggested_name="l4-box"),
        HostCandidate(destination="old", suggested_name="old", kept_as="old"),
    )
    page = view(stage)
    await stage.until(lambda: page.model.candidates)
    assert [one.destination for one in page.model.candidates] == ["L4-Box"]
    page.add()
    dialog = page.dialog
    assert dialog is not None
    assert "L4-Box" in dialog.offered.text()
    assert not dialog.save.isEnabled()
    dialog.destination.setText("L4-Box")
    assert dialog.name.text() == "l4-box"
    assert dialog.command.label.text() == "sndr host add l4-box L4-Box"
    for wrong in ("-oProxyCommand=touch x", "a b", "a;b", "$(x)", "me@", "a\x1b"):
        dialog.destination.setText(wrong)
        assert not dialog.save.isEnabled(), wrong
    dialog.destination.setText("L4-Box")
    dialog.name.setText("L4")
    assert not dialog.save.isEnabled()
    assert dialog.wrong.text().startswith("Name:")
    dialog.name.setText("l4")
    dialog.agentless.setChecked(True)
    assert "--agentless" in dialog.command.label.text()
    dialog.save.click()
    await stage.until(lambda: "l4" in page.cards)
    assert stage.host.sent("POST", "/v1/hosts")[0]["destination"] == "L4-Box"
    assert page.dialog is None
    assert not page._empty.isVisible()


async def test_a_host_that_is_refused_says_why_in_the_dialog(stage: Stage) -> None:
    stage.host.refuse["/v1/hosts"] = Problem(reason=Reason.CONFLICT, message="There is a host gpu already.")
    page = view(stage)
    page.add()
    dialog = page.dialog
    assert dialog is not None
    dialog.destination.setText("gpu")
    dialog.save.click()
    await stage.until(lambda: dialog.problem.isVisible())
    assert page.dialog is dialog
    dialog.reject()


async def test_a_host_is_connected_disconnected_and_removed_with_undo(stage: Stage) -> None:
    told: list[Notice] = []
    stage.notices.posted.connect(told.append)
    stage.host.set_remote(remote(notes="keep it cool", model_root="/data"))
    page = view(stage)
    await stage.until(lambda: "gpu" in page.cards)
    card = page.cards["gpu"]
    assert card._state.text() == "not connected"
    stage.host.becomes = {"state": RemoteHostState.CONNECTED, "sentence": "Connected.", "connected_at": 1.0}
    card.buttons.made["connect"].click()
    await stage.until(lambda: card._state.text() == "connected")
    assert not card.buttons.made["connect"].isVisible()
    card.buttons.made["disconnect"].click()
    await stage.until(lambda: card._state.text() == "not connected")
    card.buttons.made["open"].click()
    assert page.detail is not None
    page.detail.buttons.made["remove"].click()
    await stage.until(lambda: "gpu" not in page.cards and told)
    action = told[-1].action
    assert action is not None
    action()
    await stage.until(lambda: "gpu" in page.cards)
    again = stage.host.sent("POST", "/v1/hosts")[-1]
    assert (again["notes"], again["model_root"]) == ("keep it cool", "/data")


async def test_facts_are_shown_with_their_age_and_what_was_not_read_is_no_number(stage: Stage) -> None:
    stage.host.set_remote(remote())
    page = view(stage)
    await stage.until(lambda: "gpu" in page.cards)
    values = page.cards["gpu"]._values
    await stage.until(lambda: values["Facts"].text() == "never read")
    assert values["GPUs"].text() == "not read yet"
    assert values["Decode now"].text() == "—"
    stage.host.remote_facts["gpu"] = facts()
    at = time.time() - 300
    stage.host.set_remote(remote(state=RemoteHostState.CONNECTED, facts_at=at))
    await stage.until(lambda: values["GPUs"].text() == "2 × L4")
    assert values["Models"].text() == "vLLM"
    assert values["Facts"].text() == "read 5 min ago"
    measured: dict[str, Any] = {"tokens_per_second": 84.2, "tokens_at": at, "connected_at": 1.0}
    happened: dict[str, Any] = {"last_event": "qwen3 answers", "last_event_at": time.time() - 300}
    stage.host.set_remote(remote(state=RemoteHostState.CONNECTED, facts_at=at, **measured, **happened))
    await stage.until(lambda: values["Decode now"].text() == "84.2 tok/s")
    assert values["Last event"].text() == "qwen3 answers, 5 min ago"
    page.model.open("gpu")
    assert page.detail is not None
    page.detail.buttons.made["probe"].click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/probe"))


async def test_a_failure_says_what_why_and_what_to_do(stage: Stage) -> None:
    changed = Problem(
        reason=Reason.HOST_KEY_CHANGED,
        message="The host key of gpu is another one than before.",
        fix=Fix(text="Compare it, then forget the old one.", command="ssh-keygen -R gpu"),
    )
    failed = remote(state=RemoteHostState.FAILED, sentence="It stopped.", problem=changed)
    stage.host.set_remote(failed)
    page = view(stage)
    await stage.until(lambda: "gpu" in page.cards)
    card = page.cards["gpu"]
    await stage.until(lambda: card._problem.isVisible())
    assert card._problem._command.label.text() == "ssh-keygen -R gpu"
    assert card._state.text() == "host key changed"


@pytest.mark.parametrize("hostile", ["<b>bold</b>\x1b[2J", "a" * 5_000, "\u202eevil", "two\nlines"])
async def test_words_of_another_machine_are_shown_and_not_obeyed(stage: Stage, hostile: str) -> None:
    stage.host.remote_facts["gpu"] = facts(
        system=hostile, gpus=(RemoteGpu(index=0, uuid="a", name=hostile),), problems={"disks": hostile}
    )
    stage.host.set_remote(remote(state=RemoteHostState.CONNECTED, sentence=hostile, facts_at=1.0))
    page = view(stage)
    await stage.until(lambda: "gpu" in page.model.facts)
    stage.window.grab()


@pytest.mark.parametrize(
    ("destination", "name"),
    [
        ("me@GPU-1.example.org", "gpu-1"),
        ("ssh://me@box:2222", "box"),
        ("10.0.0.7", "10-0-0-7"),
        ("", ""),
        ("--", ""),
    ],
)
def test_a_name_is_suggested_from_the_address(destination: str, name: str) -> None:
    assert suggested_name(destination, ()) == name


def test_the_command_of_a_form_quotes_what_a_shell_would_act_on() -> None:
    form = HostForm("gpu", "gpu", notes="$(touch x); y")
    assert form.command == "sndr host add gpu gpu --notes '$(touch x); y'"


async def test_a_job_that_failed_is_whole_on_its_card_and_can_be_put_away(stage: Stage) -> None:
    stage.host.set_remote(remote(state=RemoteHostState.CONNECTED))
    stage.host.set_remote(remote("other"))
    page = view(stage)
    await stage.until(lambda: set(page.cards) == {"", "gpu", "other"})
    stage.window.resize(1280, 820)
    problem = Problem(
        reason=Reason.NOT_FOUND,
        message="There is no model 'nope' on gpu. Known there are: sndr-demo-q8-0, sndr-demo-safetensors.",
        fix=Fix(text="See what it has.", command="sndr --host gpu models"),
    )
    job = Job(
        id="job-9",
        kind=JobKind.HOST_INSTALL,
        title="Fetch nope from gpu",
        touches="files of gpu",
        state=JobState.RUNNING,
        created_at=1.0,
        machines=("gpu",),
    )
    stage.host.publish(JobDoneEvent(job=job))
    card = page.cards["gpu"]
    await stage.until(card._job.isVisible)
    assert card._job.cancel.text() == "Cancel"
    stage.host.publish(JobDoneEvent(job=job.model_copy(update={"state": JobState.FAILED, "error": problem})))
    await stage.until(lambda: card._job.cancel.text() == "Dismiss")
    for part in (card, card._job, card._job._step, card._job.command):
        await stage.until(lambda part=part: part.height() >= part.heightForWidth(part.width()))  # type: ignore[misc]
    assert card._job.cancel.accessibleName() == "Dismiss the change of the host"
    card._job.cancel.click()
    await stage.until(lambda: not card._job.isVisible())


async def test_a_card_that_was_placed_anew_grows_with_what_it_has_to_say(stage: Stage) -> None:
    stage.host.set_remote(remote())
    # The cards are made while their page has no size yet, and get their columns once it has one.
    await stage.until(lambda: stage.pages.fleet.remote("gpu"))
    card = view(stage).cards["gpu"]
    await stage.until(lambda: card.height() > 50)
    before = card.height()
    unreachable = Problem(reason=Reason.SSH_UNREACHABLE, message="gpu cannot be reached.", cause="No route.")
    stage.host.set_remote(remote(state=RemoteHostState.FAILED, problem=unreachable))
    await stage.until(card._problem.isVisible)
    await stage.until(lambda: card.height() > before and card.height() >= card.heightForWidth(card.width()))
