"""The newest of many things: so many at most, and so much at most of all together."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """A ring bounded by a number and by a size.

    The oldest goes first; what is larger than all of the ring is not kept.
    """

    def __init__(self, count: int, size: int) -> None:
        self._count = count
        self._size = size
        self._held: deque[tuple[T, int]] = deque()
        self.size = 0

    def add(self, item: T, size: int) -> None:
        """Keep an item of this size."""
        held = self._held
        held.append((item, size))
        self.size += size
        # Not by `drop_oldest`: a full ring passes here with each token of a stream.
        while self.size > self._size or len(held) > self._count:
            self.size -= held.popleft()[1]

    def drop_oldest(self) -> None:
        """Let go of the oldest item. Raises IndexError when there is none."""
        _, size = self._held.popleft()
        self.size -= size

    def clear(self) -> None:
        """Let go of all."""
        self._held.clear()
        self.size = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[T]:
        return (item for item, _ in self._held)

    def __getitem__(self, place: int) -> T:
        return self._held[place][0]
