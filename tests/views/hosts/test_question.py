"""Questions of ssh as dialogs: a new key, a passphrase; refused by closing, gone when ssh waits no more."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from engine_host.protocol.events import SshQuestionEvent
from engine_host.protocol.remote.hosts import SshQuestion, SshQuestionKind
from sndr_gui.views.hosts.question import QuestionDialog
from tests.views.conftest import Stage

KEY = SshQuestion(
    id="q1",
    host="gpu",
    kind=SshQuestionKind.HOST_KEY,
    text="The authenticity of host 'gpu' can't be established.",
    fingerprint="SHA256:abcdef",
    key_type="ED25519",
    secret=False,
    asked_at=1.0,
)
PASSPHRASE = SshQuestion(
    id="q2", host="gpu", kind=SshQuestionKind.PASSPHRASE, text="Enter passphrase for key:", asked_at=2.0
)

TOUCH = SshQuestion(
    id="q3",
    host="gpu",
    kind=SshQuestionKind.CONFIRM,
    text="Confirm user presence for key ED25519-SK SHA256:abc",
    secret=False,
    notice=True,
    asked_at=3.0,
)


def shown(stage: Stage) -> QuestionDialog | None:
    return next((one for one in stage.window.findChildren(QuestionDialog) if one.isVisible()), None)


async def asked(stage: Stage, question: SshQuestion) -> QuestionDialog:
    stage.host.ask(question)
    await stage.until(lambda: shown(stage) is not None)
    dialog = shown(stage)
    assert dialog is not None
    return dialog


def answers(stage: Stage, question: SshQuestion) -> list[object]:
    return stage.host.sent("POST", f"/v1/hosts/questions/{question.id}")


async def test_a_new_key_is_shown_with_its_fingerprint_and_enter_refuses_it(stage: Stage) -> None:
    dialog = await asked(stage, KEY)
    assert dialog.fingerprint.text() == "ED25519 SHA256:abcdef"
    assert dialog.refuse.isDefault()
    assert not dialog.accept_it.isDefault()
    assert not dialog.edit.isVisible()
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    await stage.until(lambda: answers(stage, KEY))
    assert answers(stage, KEY) == [{"accept": False, "answer": ""}]


async def test_an_accepted_key_is_told_to_ssh_once(stage: Stage) -> None:
    dialog = await asked(stage, KEY)
    dialog.accept_it.click()
    await stage.until(lambda: answers(stage, KEY))
    await stage.until(lambda: shown(stage) is None)
    assert answers(stage, KEY) == [{"accept": True, "answer": ""}]


async def test_a_passphrase_is_typed_without_echo_and_left_nowhere(stage: Stage) -> None:
    dialog = await asked(stage, PASSPHRASE)
    assert dialog.edit.echoMode() is QLineEdit.EchoMode.Password
    edit = dialog.edit
    edit.setText("a secret")
    dialog.accept_it.click()
    assert edit.text() == ""
    await stage.until(lambda: answers(stage, PASSPHRASE))
    assert answers(stage, PASSPHRASE) == [{"accept": True, "answer": "a secret"}]


async def test_a_touch_of_a_key_has_nothing_to_answer(stage: Stage) -> None:
    dialog = await asked(stage, TOUCH)
    assert not dialog.accept_it.isVisible()
    assert not dialog.edit.isVisible()
    assert dialog.refuse.text() == "Close"
    assert "goes away by itself" in dialog.note.text()
    stage.host.questions.pop(TOUCH.id)
    stage.host.publish(SshQuestionEvent(question=TOUCH, open=False))
    await stage.until(lambda: shown(stage) is None)
    assert answers(stage, TOUCH) == []


async def test_escape_is_a_no(stage: Stage) -> None:
    dialog = await asked(stage, PASSPHRASE)
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await stage.until(lambda: answers(stage, PASSPHRASE))
    assert answers(stage, PASSPHRASE) == [{"accept": False, "answer": ""}]


async def test_a_question_that_was_answered_elsewhere_goes_away_without_an_answer(stage: Stage) -> None:
    await asked(stage, KEY)
    stage.host.questions.pop(KEY.id)
    stage.host.publish(SshQuestionEvent(question=KEY, open=False))
    await stage.until(lambda: shown(stage) is None)
    assert not answers(stage, KEY)


async def test_questions_come_one_after_the_other(stage: Stage) -> None:
    dialog = await asked(stage, KEY)
    stage.host.ask(PASSPHRASE)
    dialog.accept_it.click()
    await stage.until(lambda: (now := shown(stage)) is not None and now.question.id == "q2")
    again = shown(stage)
    assert again is not None
    again.reject()
    await stage.until(lambda: answers(stage, PASSPHRASE))


async def test_what_a_server_says_is_shown_and_not_obeyed(stage: Stage) -> None:
    hostile = KEY.model_copy(update={"text": "<b>yes</b>\x1b[2J\u202e" + "x" * 50_000})
    dialog = await asked(stage, hostile)
    assert "\x1b" not in dialog.asked.text()
    assert "\u202e" not in dialog.asked.text()
    assert "<b>" in dialog.asked.text()
    dialog.reject()
    await stage.until(lambda: answers(stage, KEY))
