"""The card of the endpoint: its address, who can reach it, and examples."""

from engine_host.protocol.language import tr
from sndr_gui.models.home.page import HomeModel
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyButton, CopyField, SegmentedControl
from sndr_gui.views.widgets.labels import Dot, set_text, set_tone, text
from sndr_gui.views.widgets.layout import row


class EndpointCard(Card):
    """The address of the endpoint, who can reach it, and examples to paste."""

    def __init__(self, model: HomeModel) -> None:
        super().__init__(tr("Endpoint"))
        self._model = model
        self._dot = Dot("muted")
        self._url = text("", name="big")
        self._copy = CopyButton(tr("the address"))
        self._reach = text("", "muted", wrap=True)
        self._switch = SegmentedControl(("curl", "OpenAI SDK"), tr("Example"))
        self._snippet = CopyField(what=tr("the example"), wraps=True)
        for choice in self._switch.buttons:
            choice.toggled.connect(self.refresh)
        self.body.addLayout(row(self._dot, self._url, self._copy, None))
        self.body.addWidget(self._reach)
        self.body.addSpacing(2)
        self.body.addLayout(row(self._switch, None))
        self.body.addWidget(self._snippet)
        self.body.addStretch(1)

    def refresh(self) -> None:
        """Show the endpoint of now."""
        endpoint = self._model.endpoint
        url = endpoint.url if endpoint else None
        connected = self._model.session.connection.connected
        self._dot.set_token("good" if url and connected else "bad" if connected else "muted")
        set_text(self._url, url or tr("not served"))
        self._copy.set_content(url or "")
        set_text(self._reach, self._model.reach())
        open_to_all = endpoint is not None and endpoint.reach == "network" and not endpoint.key_required
        set_tone(self._reach, "warn" if open_to_all else "muted")
        elsewhere = bool(self._model.session.host)
        self._switch.setVisible(not elsewhere)
        # The address is another program's on this machine, or nobody's.
        form = ("curl", "python")[self._switch.place]
        self._snippet.set_content("sndr chat" if elsewhere else self._model.snippet(form))
