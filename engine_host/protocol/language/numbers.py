"""Numbers as a language writes them: what parts thousands, and its decimal sign."""

_SIGNS = {"de": (".", ","), "ru": ("\u00a0", ",")}
"""Of the languages that write them otherwise than English."""


def written(number: str, language: str) -> str:
    """Return a number that was formatted as in English, `8,192.5`, as a language writes it."""
    if (signs := _SIGNS.get(language)) is None:
        return number
    return number.translate({ord(","): signs[0], ord("."): signs[1]})
