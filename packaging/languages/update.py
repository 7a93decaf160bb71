"""`make languages`: find messages, keep what is translated, compile; `--check` says what is wrong.

`update.py [--check] [LANGUAGE …]`; exit code 1 where something is wrong.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from messages import ROOT, messages
from po import PLURALS, Entry, compiled, faults, parse, written
from style import strays

LOCALES = ROOT / "resources" / "locales"


def main(arguments: list[str]) -> int:
    """Write or check the files of languages; the exit code."""
    check = "--check" in arguments
    languages = [name for name in arguments if name != "--check"] or list(PLURALS)
    wanted = messages()
    wrong = 0
    template = LOCALES / "sndr.pot"
    if not check:
        template.write_text(written("", wanted), encoding="utf-8")
    elif template.read_text(encoding="utf-8") != written("", wanted):
        print("sndr.pot: a message has another place now: make languages")
        wrong += 1
    for language in languages:
        source = LOCALES / language / "LC_MESSAGES" / "sndr.po"
        there = parse(source.read_text(encoding="utf-8")) if source.is_file() else []
        if check:
            found = faults(language, there, wanted) + strays(language, there)
            machine = source.with_suffix(".mo")
            if not machine.is_file() or machine.read_bytes() != compiled(language, there):
                found.append("sndr.mo is not made from sndr.po: make languages")
            for fault in found:
                print(f"{language}: {fault}")
            wrong += len(found)
            continue
        merged = _merged(there, wanted)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(written(language, merged), encoding="utf-8")
        source.with_suffix(".mo").write_bytes(compiled(language, merged))
        empty = sum(not entry.said or not all(entry.said) for entry in merged)
        print(f"{language}: {len(merged)} messages, {empty} not translated")
    return 1 if wrong else 0


def _merged(there: list[Entry], wanted: list[Entry]) -> list[Entry]:
    """Return the wanted messages, with the translations that there are."""
    known = {(entry.one, entry.many): entry for entry in there}
    merged = []
    for entry in wanted:
        old = known.get((entry.one, entry.many))
        merged.append(
            Entry(entry.one, entry.many, entry.files, old.said if old else [], old.fuzzy if old else False)
        )
    return merged


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
