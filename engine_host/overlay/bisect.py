"""Find the patches that make a check fail, by starts with halves of the set.

The search for one failing set is the divide and conquer of QuickXplain (Junker, AAAI 2004) over prefixes of
the order of application: what a patch requires stands before it, so that every prefix is a whole set.
"""

from collections.abc import Awaitable, Callable, Sequence

Fails = Callable[[tuple[str, ...]], Awaitable[bool]]


async def culprits(patches: Sequence[str], fails: Fails) -> tuple[tuple[str, ...], ...]:
    """The smallest sets that fail: each is one patch, or patches that fail only together.

    `patches` is in order of application and fails as a whole; the empty set must pass. `fails` is asked at
    most once about each set. About log2(n) + 1 questions for each culprit, and one more at the end of each
    set: whether all the others pass.
    """
    known: dict[tuple[str, ...], bool] = {(): False, tuple(patches): True}

    async def ask(chosen: Sequence[str]) -> bool:
        # In order of application, however the search came to this set.
        key = tuple(name for name in patches if name in chosen)
        if key not in known:
            known[key] = await fails(key)
        return known[key]

    found: list[tuple[str, ...]] = []
    left = list(patches)
    while await ask(left):
        together = await _smallest(left, ask)
        found.append(together)
        left = [name for name in left if name not in together]
    return tuple(found)


async def _smallest(
    suspects: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[bool]]
) -> tuple[str, ...]:
    """The members of one smallest failing set; `suspects` fail together."""
    found: list[str] = []
    suspects = list(suspects)
    while not found or not await ask(found):
        # What was found fails with all suspects, and passes with none of them.
        passes, failing = 0, len(suspects)
        while failing - passes > 1:
            middle = (passes + failing) // 2
            if await ask([*found, *suspects[:middle]]):
                failing = middle
            else:
                passes = middle
        found.append(suspects[failing - 1])
        suspects = suspects[: failing - 1]
    return tuple(reversed(found))
