"""Write the text on which `sndr bench quality` measures the bundled model: python quality_text.py FILE.

New conversations from this project's generators, with a seed that no training used, in the model's format.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import code_tasks
import stories
from conversation import Piece, chat

SEED = 20261122
CHARACTERS = 60_000


def conversation(rng: random.Random) -> list[Piece]:
    """Return one conversation: a task, a class, a story or an essay.

    Calls of tools are left out: their schemas were no part of what was learned, and are most of such a text.
    """
    kind = rng.randrange(6)
    if kind < 2:
        return chat([code_tasks.task(rng)])
    if kind == 2:
        return chat([code_tasks.of_several(rng), code_tasks.task(rng)])
    if kind == 3:
        return chat([code_tasks.class_for(rng)])
    return chat([stories.story(rng) if kind == 4 else stories.essay(rng)])


def main() -> None:
    """Write so many characters of conversations."""
    rng = random.Random(SEED)
    text = ""
    while len(text) < CHARACTERS:
        text += "".join(piece for piece, _ in conversation(rng))
    Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
