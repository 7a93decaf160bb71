"""The program's icon as the files that desktops ask for: `icons.py FOLDER [--ico FILE] [--icns FILE]`."""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SOURCE = Path(__file__).resolve().parents[2] / "resources" / "icons" / "sndr.svg"
SIZES = (48, 64, 128, 256, 512)


def picture(size: int) -> QImage:
    """Return the icon as pixels."""
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(SOURCE)).render(painter)
    painter.end()
    return image


def main() -> int:
    """Write what is asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="share/icons/hicolor of a package")
    parser.add_argument("--ico", type=Path, help="for Windows")
    parser.add_argument("--icns", type=Path, help="for macOS")
    asked = parser.parse_args()
    application = QGuiApplication([])
    written = []
    if asked.folder is not None:
        for size in SIZES:
            path = asked.folder / f"{size}x{size}" / "apps" / "sndr.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            written.append(picture(size).save(str(path)))
        scalable = asked.folder / "scalable" / "apps" / "sndr.svg"
        scalable.parent.mkdir(parents=True, exist_ok=True)
        scalable.write_bytes(SOURCE.read_bytes())
    if asked.ico is not None:
        written.append(picture(256).save(str(asked.ico), "ICO"))
    if asked.icns is not None:
        written.append(picture(512).save(str(asked.icns), "ICNS"))
    del application
    return 0 if all(written) else 1


if __name__ == "__main__":
    sys.exit(main())
