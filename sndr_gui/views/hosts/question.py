"""The dialog of a question of ssh: a new host key, a passphrase, a password, a confirmation."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import SshQuestion, SshQuestionKind
from sndr_gui.models.hosts.questions import QuestionsModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import WrapAnywhereLabel
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row

_TITLES = {
    SshQuestionKind.HOST_KEY: tr("Is this {host}?"),
    SshQuestionKind.PASSPHRASE: tr("Passphrase for {host}"),
    SshQuestionKind.PASSWORD: tr("Password for {host}"),
    SshQuestionKind.CONFIRM: tr("{host} asks"),
    SshQuestionKind.OTHER: tr("{host} asks"),
}
_NEW_KEY = tr(
    "It was never connected from here. Compare the fingerprint with what its "
    "administrator says, or with ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub "
    "typed there. ssh keeps the key once you accept it."
)
_TYPED = tr("It goes to ssh, and is kept nowhere.")
_NOTICE = tr("{host} waits for your security key")
_NOTHING = tr("Touch it. Nothing is to be typed, and this goes away by itself.")
_YES_OR_NO = frozenset({SshQuestionKind.HOST_KEY, SshQuestionKind.CONFIRM})


class QuestionDialog(Dialog):
    """Asks what ssh asks; closing it is a no, and so is Enter on a key that nobody has looked at."""

    def __init__(self, parent: QWidget, model: QuestionsModel, question: SshQuestion) -> None:
        titled = _NOTICE if question.notice else _TITLES[question.kind]
        super().__init__(parent, titled.format(host=question.host))
        self.setMinimumWidth(520)
        self._model, self.question = model, question
        self._told = False
        is_key = question.kind is SshQuestionKind.HOST_KEY
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(self.windowTitle(), name="h2", wrap=True))
        if question.again:
            lines.addWidget(text(tr("That was not right. Once more:"), "bad", wrap=True))
        if is_key:
            lines.addWidget(text(_NEW_KEY, "muted", wrap=True))
        self.asked = WrapAnywhereLabel(readable(question.text.strip()))
        self.asked.setAccessibleName(tr("What ssh asks"))
        lines.addWidget(self.asked)
        shown = " ".join(filter(None, (question.key_type, question.fingerprint)))
        self.fingerprint = WrapAnywhereLabel(readable(shown))
        self.fingerprint.setAccessibleName(
            tr("Fingerprint {fingerprint}", fingerprint=question.fingerprint or tr("not told"))
        )
        self.fingerprint.setVisible(is_key)
        lines.addWidget(self.fingerprint)
        self.edit = QLineEdit()
        self.edit.setAccessibleName(_TITLES[question.kind].format(host=question.host))
        if question.secret:
            self.edit.setEchoMode(QLineEdit.EchoMode.Password)
        asks = question.kind not in _YES_OR_NO
        self.edit.setVisible(asks)
        lines.addWidget(self.edit)
        self.note = text(_NOTHING if question.notice else _TYPED, "muted", wrap=True)
        self.note.setVisible(asks or question.notice)
        lines.addWidget(self.note)
        command = f"sndr host connect {question.host}"
        self.refuse = button(
            tr("Refuse"), self.reject, hint=tr("Answer no; nothing is connected"), command=command
        )
        self.accept_it = button(
            tr("Accept") if not asks else tr("Answer"),
            self._on_accept,
            kind="primary" if asks else "",
            hint=tr("Keep this key and go on") if is_key else tr("Answer ssh"),
            command=command,
        )
        if question.notice:
            self.accept_it.hide()
            self.refuse.setText(tr("Close"))
            self.refuse.setToolTip(tr("ssh goes on waiting"))
        lines.addLayout(row(None, self.refuse, self.accept_it))
        self.finished.connect(self._on_closed)
        model.changed.connect(self._on_changed)
        first = self.accept_it if asks else self.refuse
        first.setDefault(True)
        (self.edit if asks else self.refuse).setFocus()

    def _on_accept(self) -> None:
        typed = self.edit.text()
        self.edit.clear()
        self._say(True, typed)
        self.accept()

    def _say(self, accept: bool, typed: str = "") -> None:
        if not self._told:
            self._told = True
            self._model.answer(self.question, accept, typed)

    def _on_closed(self) -> None:
        self.edit.clear()
        self._say(False)

    def _on_changed(self) -> None:
        """Go away when ssh waits no more: it was answered elsewhere, or it gave up."""
        waiting = self._model.question
        if not self._told and (waiting is None or waiting.id != self.question.id):
            self._told = True
            self.reject()
