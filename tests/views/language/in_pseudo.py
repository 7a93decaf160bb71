"""A plugin of pytest that speaks the pseudo-language from the start: every text of the window is in it."""

from engine_host.client.language import PSEUDO, install

install(PSEUDO)
