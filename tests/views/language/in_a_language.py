"""A plugin of pytest that speaks the language of `SNDR_LANGUAGE` from the start, as the window does."""

import os

from engine_host.protocol.language import install

install(os.environ["SNDR_LANGUAGE"])
