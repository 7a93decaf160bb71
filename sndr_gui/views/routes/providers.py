"""The providers of a route in the order in which they are asked, of which one is edited."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QListWidget, QVBoxLayout, QWidget

from engine_host.protocol.endpoint.routes import RouteStatus, TargetState, TargetStatus
from engine_host.protocol.language import tr
from sndr_gui.models.routes.form import ProviderForm
from sndr_gui.models.routes.page import RoutesModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.flow import Flow

_MOST = 9
_ROWS = 3


class ProviderList(QWidget):
    """Chooses, adds, removes and orders providers; what each was seen to do stands beside it.

    Signals:
        changed: another one is chosen, or their order is another
    """

    changed = Signal()

    def __init__(self, model: RoutesModel, forms: list[ProviderForm], status: RouteStatus | None) -> None:
        super().__init__()
        self.forms = forms
        self._model = model
        self._seen: dict[tuple[str, str], TargetStatus] = {}
        if status is not None:
            told = [target for target in status.targets if target.provider]
            for one, target in zip(status.route.targets.providers, told, strict=False):
                self._seen[one.provider.url, one.provider.model] = target
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Providers, in the order in which they are asked"))
        self.add = button(
            tr("Add"), self._on_add, hint=tr("One more provider, asked where those before it fail")
        )
        self.remove = button(tr("Remove"), self._on_remove, hint=tr("Remove this provider"))
        self.up = button(tr("Up"), lambda: self._move(-1), hint=tr("Ask it before the one above"))
        self.down = button(tr("Down"), lambda: self._move(1), hint=tr("Ask it after the one below"))
        for made in (self.add, self.remove, self.up, self.down):
            made.setAccessibleName(tr("{text} provider", text=made.text()))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(self.list)
        lines.addWidget(Flow(self.add, self.remove, self.up, self.down))
        self.list.currentRowChanged.connect(self._on_row)
        self._show(0)
        rows = self.list.sizeHintForRow(0) * _ROWS
        self.list.setFixedHeight(rows + 2 * self.list.frameWidth())

    @property
    def chosen(self) -> ProviderForm:
        """The one that is edited."""
        return self.forms[max(0, self.list.currentRow())]

    def show_forms(self) -> None:
        """Show what was typed of each, in the order of now."""
        for place, form in enumerate(self.forms):
            item = self.list.item(place)
            if item is not None:
                item.setText(f"{place + 1}. {form.title} · {self._state(form)}")
        row, count = self.list.currentRow(), len(self.forms)
        self.add.setEnabled(count < _MOST)
        self.remove.setEnabled(count > 1)
        self.up.setEnabled(row > 0)
        self.down.setEnabled(row < count - 1)

    def _state(self, form: ProviderForm) -> str:
        """Return what is known of a provider, for the address and the model that were seen alone."""
        if not form.allow_remote:
            return tr("may not be asked")
        seen = self._seen.get((form.url.strip(), form.model.strip()))
        if seen is None:
            return tr("not asked yet")
        if seen.state is TargetState.NOT_ALLOWED:
            # It was not allowed when it was seen, and is now.
            return tr("not asked yet")
        word, _tone = self._model.state_of(seen.state)
        return word

    def _show(self, row: int) -> None:
        """Show the list anew, with this row chosen."""
        self.list.blockSignals(True)
        self.list.clear()
        self.list.addItems([form.title for form in self.forms])
        self.list.setCurrentRow(row)
        self.list.blockSignals(False)
        self.show_forms()

    def _on_row(self) -> None:
        self.show_forms()
        self.changed.emit()

    def _on_add(self) -> None:
        self.forms.append(ProviderForm())
        self._show(len(self.forms) - 1)
        self.changed.emit()

    def _on_remove(self) -> None:
        row = self.list.currentRow()
        del self.forms[row]
        self._show(min(row, len(self.forms) - 1))
        self.changed.emit()

    def _move(self, by: int) -> None:
        row = self.list.currentRow()
        other = row + by
        self.forms[row], self.forms[other] = self.forms[other], self.forms[row]
        self._show(other)
        self.changed.emit()
