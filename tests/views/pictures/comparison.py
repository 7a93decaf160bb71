"""Compares a picture with a reference: glyphs may be drawn otherwise, nothing may stand elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

Pixels = NDArray[Any]
CELL = 16
"""Side of the squares that are judged, in pixels."""
FLAT = 6
"""Levels by which a colour may be another one where the reference is of one colour all around."""
EDGE = 72
"""Levels by which it may be another one beside edges: rasterisers smooth them each in their way."""
MOST = 14
"""Wrong pixels of a cell that are still no difference."""
REACH = 2
"""Pixels around one that must have its colour for it to be away from edges."""
COLOURS = 256
FREQUENT = 96


@dataclass(frozen=True)
class Difference:
    """The cells in which two pictures are not the same."""

    cells: tuple[tuple[int, int], ...]
    sizes: tuple[tuple[int, int], tuple[int, int]]

    @property
    def same(self) -> bool:
        """True where nothing a person would see differs."""
        return not self.cells and self.sizes[0] == self.sizes[1]

    @property
    def said(self) -> str:
        """Where it differs, in a sentence."""
        if self.sizes[0] != self.sizes[1]:
            return "it is {0[0]}x{0[1]} and not {1[0]}x{1[1]} pixels".format(*self.sizes)
        left, top = (min(cell[axis] for cell in self.cells) * CELL for axis in (0, 1))
        right, bottom = ((max(cell[axis] for cell in self.cells) + 1) * CELL for axis in (0, 1))
        return f"{len(self.cells)} cells differ between ({left}, {top}) and ({right}, {bottom})"


def compare(now: QImage, reference: QImage) -> Difference:
    """Return where two pictures differ by more than the smoothing of edges."""
    sizes = ((now.width(), now.height()), (reference.width(), reference.height()))
    if sizes[0] != sizes[1]:
        return Difference((), sizes)
    ours, theirs = _pixels(now), _pixels(reference)
    wrong = _wrong(ours, theirs)
    if wrong.any():
        high, wide = (-(-side // CELL) for side in wrong.shape)
        padded = np.zeros((high * CELL, wide * CELL), dtype=bool)
        padded[: wrong.shape[0], : wrong.shape[1]] = wrong
        counts = padded.reshape(high, CELL, wide, CELL).sum(axis=(1, 3))
        found = tuple((int(column), int(row)) for row, column in np.argwhere(counts > MOST))
    else:
        found = ()
    return Difference(found, sizes)


def _pixels(picture: QImage) -> Pixels:
    plain = picture.convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(plain.constBits(), dtype=np.uint8)
    return flat.reshape(plain.height(), plain.bytesPerLine() // 4, 4)[:, : plain.width(), :3].astype(np.int16)


def _apart(one: Pixels, other: Pixels) -> Pixels:
    """Return by how much each pixel differs in the colour in which it differs most."""
    by_colour = np.abs(one - other)
    # `max` along an axis of three takes several times as long.
    most: Pixels = np.maximum(np.maximum(by_colour[..., 0], by_colour[..., 1]), by_colour[..., 2])
    return most


def _wrong(ours: Pixels, theirs: Pixels) -> NDArray[np.bool_]:
    """Return the pixels of which neither picture has the like beside it in the other."""
    wrong: NDArray[np.bool_] = _apart(ours, theirs) > FLAT
    if wrong.any():
        # Only around what differs: all of it takes half a second.
        part = tuple(
            slice(max(0, int(places.min()) - REACH - 1), int(places.max()) + REACH + 2)
            for places in np.nonzero(wrong)
        )
        wrong[part] = _judged(ours[part], theirs[part])
    return wrong


def _judged(ours: Pixels, theirs: Pixels) -> NDArray[np.bool_]:
    flat = _flat(theirs) & _flat(ours)
    nearest = np.maximum(_nearest(ours, theirs), _nearest(theirs, ours))
    return np.where(flat, _apart(ours, theirs) > FLAT, nearest > EDGE)


def _flat(pixels: Pixels) -> NDArray[np.bool_]:
    """Return where everything around a pixel has its colour."""
    flat = np.ones(pixels.shape[:2], dtype=bool)
    for step in range(1, REACH + 1):
        down = _apart(pixels[step:], pixels[:-step]) <= FLAT
        flat[step:] &= down
        flat[:-step] &= down
        right = _apart(pixels[:, step:], pixels[:, :-step]) <= FLAT
        flat[:, step:] &= right
        flat[:, :-step] &= right
    return flat


def _nearest(ours: Pixels, theirs: Pixels) -> Pixels:
    """Return how far each pixel's colour is from the most like one among the nine of the other picture."""
    padded = np.pad(theirs, ((1, 1), (1, 1), (0, 0)), mode="edge")
    high, wide = ours.shape[:2]
    best = np.full((high, wide), 255, dtype=np.int16)
    for down in range(3):
        for right in range(3):
            beside = padded[down : down + high, right : right + wide]
            np.minimum(best, _apart(ours, beside), out=best)
    return best


def marked(now: QImage, reference: QImage, difference: Difference) -> QImage:
    """Return the reference above the picture of now, in which the cells that differ are framed."""
    high = max(now.height(), reference.height())
    made = QImage(now.width() + reference.width() + CELL, high, QImage.Format.Format_RGB32)
    made.fill(Qt.GlobalColor.magenta)
    painter = QPainter(made)
    painter.drawImage(0, 0, reference)
    painter.drawImage(reference.width() + CELL, 0, now)
    painter.setPen(QPen(QColor("#ff0055"), 2))
    for left in (0, reference.width() + CELL):
        for column, row in difference.cells:
            painter.drawRect(QRect(left + column * CELL, row * CELL, CELL, CELL))
    painter.end()
    return made


def keep(picture: QImage, path: Path) -> None:
    """Write a picture as a small PNG: its most frequent colours are exact, others nearly so.

    Raises OSError.
    """
    pixels = _pixels(picture).astype(np.int32)
    packed = (pixels[..., 2] << 16) | (pixels[..., 1] << 8) | pixels[..., 0]
    colours, counts = np.unique(packed, return_counts=True)
    colours = colours[np.argsort(counts)[::-1]]
    parts = np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], axis=1)
    chosen = list(range(min(FREQUENT, len(colours))))
    apart = np.abs(parts[:, None] - parts[None, chosen]).max(axis=2).min(axis=1)
    # Then whatever is furthest from all that were chosen: a word in red is few pixels.
    while len(chosen) < COLOURS and apart.max() > 0:
        chosen.append(int(apart.argmax()))
        np.minimum(apart, np.abs(parts - parts[chosen[-1]]).max(axis=1), out=apart)
    table = [int(colours[place]) | 0xFF000000 for place in chosen]
    indexed = picture.convertToFormat(
        QImage.Format.Format_Indexed8, table, Qt.ImageConversionFlag.AvoidDither
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    if not indexed.save(str(path), quality=0):
        raise OSError(f"{path} could not be written")
