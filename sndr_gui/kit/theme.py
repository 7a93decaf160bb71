"""Colours, palette, style sheet, fonts and icons; the only module that names a colour."""

from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template

from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication

from sndr_gui.kit.resources import resource
from sndr_gui.kit.settings import ThemeChoice


@dataclass(frozen=True)
class Tokens:
    """The twelve colours of one theme, those of graph lines, and those of parts of a device's memory."""

    bg: str
    surface: str
    raised: str
    line: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_soft: str
    good: str
    warn: str
    bad: str
    series: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


LIGHT = Tokens(
    bg="#F6F7F9",
    surface="#FFFFFF",
    raised="#F0F2F5",
    line="#E2E5EA",
    text="#171A21",
    muted="#5F6673",
    accent="#3B5BDB",
    on_accent="#FFFFFF",
    accent_soft="#E8EDFD",
    good="#1B7F53",
    warn="#9A5B00",
    bad="#C92A2A",
    series=("#3B5BDB", "#0CA678", "#E8590C", "#9C36B5", "#C2255C", "#0B7285", "#5C940D", "#495057"),
    parts=("#4C6EF5", "#12B886", "#82C91E", "#FD7E14", "#BE4BDB", "#FAB005", "#E64980", "#15AABF", "#A9744F"),
)
DARK = Tokens(
    bg="#0F1115",
    surface="#171A21",
    raised="#1F232C",
    line="#2A2F3A",
    text="#E7EAF0",
    muted="#949CAB",
    accent="#7C93FF",
    on_accent="#0B0E16",
    accent_soft="#222A4A",
    good="#3DD39A",
    warn="#F0B35B",
    bad="#FF7B7B",
    series=("#7C93FF", "#3DD39A", "#FFA45C", "#D58BF5", "#FF8FB8", "#4DD0E1", "#B5D96B", "#CED4DA"),
    parts=("#7C93FF", "#3DD39A", "#A9E34B", "#FFA45C", "#D58BF5", "#FFD43B", "#F783AC", "#66D9E8", "#D0A27F"),
)


class _Notifier(QObject):
    """Tells whoever paints by hand that the colours changed."""

    changed = Signal()


_state: dict[str, Tokens | None] = {"forced": None}
notifier = _Notifier()
_mono_family: list[str] = ["monospace"]


def current() -> Tokens:
    """Return the colours in use."""
    if (forced := _state["forced"]) is not None:
        return forced
    dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return DARK if dark else LIGHT


def color(token: str) -> QColor:
    """Return one colour of the theme in use, by its token's name."""
    return QColor(getattr(current(), token))


def choose(choice: ThemeChoice) -> None:
    """Follow the system, or force one theme; also where the platform ignores colour schemes."""
    _state["forced"] = {ThemeChoice.LIGHT: LIGHT, ThemeChoice.DARK: DARK}.get(choice)
    scheme = {ThemeChoice.LIGHT: Qt.ColorScheme.Light, ThemeChoice.DARK: Qt.ColorScheme.Dark}
    # Native title bars follow this where the platform has them.
    QGuiApplication.styleHints().setColorScheme(scheme.get(choice, Qt.ColorScheme.Unknown))
    apply()


def apply() -> None:
    """Give the application the palette and style sheet of the theme in use."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        return
    tokens = current()
    values = {name: value for name, value in asdict(tokens).items() if isinstance(value, str)}
    shade = "dark" if tokens is DARK else "light"
    icons = resource("icons").as_posix()
    sheet = _style().substitute(values, icons=icons, shade=shade, mono=_mono_family[0])
    # Every widget there is is measured anew for a sheet, also for the one that is in force.
    if app.styleSheet() == sheet:
        return
    palette = QPalette()
    role = QPalette.ColorRole
    for which, value in (
        (role.Window, tokens.bg),
        (role.WindowText, tokens.text),
        (role.Base, tokens.surface),
        (role.AlternateBase, tokens.raised),
        (role.Text, tokens.text),
        (role.Button, tokens.surface),
        (role.ButtonText, tokens.text),
        (role.Highlight, tokens.accent),
        (role.HighlightedText, tokens.on_accent),
        (role.PlaceholderText, tokens.muted),
        (role.ToolTipBase, tokens.raised),
        (role.ToolTipText, tokens.text),
        (role.Link, tokens.accent),
        (role.Mid, tokens.line),
        (role.Accent, tokens.accent),
    ):
        palette.setColor(which, QColor(value))
    app.setPalette(palette)
    app.setStyleSheet(sheet)
    notifier.changed.emit()


def setup(app: QApplication, choice: ThemeChoice) -> None:
    """Prepare style, fonts and colours once at start."""
    app.setStyle("Fusion")
    _load_fonts()
    font = QFont("Inter")
    font.setPixelSize(13)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    # Tabular digits: numbers that change must not jump.
    font.setFeature(QFont.Tag("tnum"), 1)
    _plain_characters(font)
    app.setFont(font)
    app.setWindowIcon(QIcon(str(resource("icons", "sndr.svg"))))
    choose(choice)
    app.styleHints().colorSchemeChanged.connect(_on_scheme_changed)


def _on_scheme_changed(_scheme: Qt.ColorScheme) -> None:
    if _state["forced"] is None:
        apply()


def _load_fonts() -> None:
    for path in sorted(resource("fonts").glob("*.[ot]tf")):
        number = QFontDatabase.addApplicationFont(str(path))
        families = QFontDatabase.applicationFontFamilies(number) if number >= 0 else []
        if path.name.startswith("JetBrains") and families:
            _mono_family[0] = families[0]


def mono_font(pixels: int = 12) -> QFont:
    """Return the font of command lines and logs."""
    font = QFont(_mono_family[0])
    font.setPixelSize(pixels)
    font.setStyleHint(QFont.StyleHint.Monospace)
    _plain_characters(font)
    return font


def _plain_characters(font: QFont) -> None:
    """Draw `!=` and `->` as they are typed: what is copied must be what is seen."""
    for feature in ("calt", "liga"):
        font.setFeature(QFont.Tag(feature), 0)


_style_text: list[str] = []


def _style() -> Template:
    if not _style_text:
        _style_text.append(Path(__file__).with_name("style.qss").read_text(encoding="utf-8"))
    return Template(_style_text[0])


def pixmap(name: str, token: str, pixels: int = 18) -> QPixmap:
    """Return an icon in one of the theme's colours, sharp at the screen's scale."""
    app = QApplication.instance()
    scale = app.devicePixelRatio() if isinstance(app, QApplication) else 1.0
    key = (name, getattr(current(), token), pixels, scale)
    if key not in _drawn:
        _drawn[key] = _draw(*key)
    return _drawn[key]


# A page has dozens of the same few icons.
_drawn: dict[tuple[str, str, int, float], QPixmap] = {}


def _draw(name: str, colour: str, pixels: int, scale: float) -> QPixmap:
    svg = resource("icons", f"{name}.svg").read_text(encoding="utf-8")
    svg = svg.replace("currentColor", colour)
    svg = svg.replace('stroke-width="2"', 'stroke-width="1.8"')
    image = QPixmap(round(pixels * scale), round(pixels * scale))
    image.setDevicePixelRatio(scale)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(0, 0, pixels, pixels))
    painter.end()
    return image


def icon(name: str, token: str = "text", pixels: int = 18) -> QIcon:
    """Return an icon in one of the theme's colours; muted while its control is disabled."""
    made = QIcon(pixmap(name, token, pixels))
    made.addPixmap(pixmap(name, "muted", pixels), QIcon.Mode.Disabled)
    return made


class ButtonIcon(QObject):
    """Keeps the icon of a button in the theme's colours."""

    def __init__(self, button: QAbstractButton, name: str, token: str = "text", pixels: int = 16) -> None:
        super().__init__(button)
        self._button, self._name, self._token, self._pixels = button, name, token, pixels
        notifier.changed.connect(self.paint)
        self.paint()

    def show_icon(self, name: str, token: str | None = None) -> None:
        """Show another icon."""
        self._name, self._token = name, token or self._token
        self.paint()

    def paint(self) -> None:
        """Draw the icon in the colours of now."""
        self._button.setIcon(icon(self._name, self._token, self._pixels))
