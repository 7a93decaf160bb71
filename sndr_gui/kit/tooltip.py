"""Tooltips that show text from outside as it is."""

import html

_RICH = ("<", "&lt;")
"""One of these is in every text that Qt takes for HTML (`Qt::mightBeRichText`)."""


def plain_tooltip(text: str) -> str:
    """Return a text for a tooltip that shows every character of it, and formats nothing.

    Names, paths, commands and errors come from files and other programs. Qt would take what looks like
    HTML in them for HTML, and a tooltip has no switch against it.
    """
    if not any(character in text for character in _RICH):
        return text
    return f'<p style="white-space:pre-wrap">{html.escape(text, quote=False)}</p>'
