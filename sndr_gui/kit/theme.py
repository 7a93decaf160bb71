"""The look in force: palette, style sheet, fonts and icons, in the colours of `look.colours`."""

from dataclasses import asdict, replace
from pathlib import Path
from string import Template

from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication

from sndr_gui.kit.look.choices import Density, Look, Motion, ThemeChoice
from sndr_gui.kit.look.colours import DARK, LIGHT, STRONG_DARK, STRONG_LIGHT, Tokens, with_accent
from sndr_gui.kit.resources import resource

# Paddings above and below, in pixels: of controls, rows, heads of tables and flat buttons.
_ROOM = {
    Density.COMFORTABLE: {"tall": 7, "item": 8, "head": 9, "flat": 4},
    Density.COMPACT: {"tall": 4, "item": 4, "head": 5, "flat": 2},
}


class _Notifier(QObject):
    """Tells whoever paints by hand that the colours changed, and whoever lays out that the room did.

    Signals:
        restyling: before the style sheet changes; whether everything keeps its size
    """

    changed = Signal()
    restyling = Signal(bool)
    density_changed = Signal()


class _State:
    """The look that was chosen, and what the desktop has of its own."""

    look = Look()
    flash_time: int | None = None
    effects: tuple[bool, ...] = ()
    sizes: tuple[Density, bool] | None = None


_state = _State()
_EFFECTS = (
    Qt.UIEffect.UI_AnimateMenu,
    Qt.UIEffect.UI_FadeMenu,
    Qt.UIEffect.UI_AnimateCombo,
    Qt.UIEffect.UI_AnimateTooltip,
    Qt.UIEffect.UI_FadeTooltip,
    Qt.UIEffect.UI_AnimateToolBox,
)
notifier = _Notifier()
_mono_family: list[str] = ["monospace"]


def current() -> Tokens:
    """Return the colours in use."""
    choice = _state.look.theme
    hints = QGuiApplication.styleHints()
    scheme = hints.colorScheme()
    dark = scheme == Qt.ColorScheme.Dark
    if choice is ThemeChoice.HIGH_CONTRAST:
        # On black, unless the desktop says that it is light.
        base = STRONG_LIGHT if scheme == Qt.ColorScheme.Light else STRONG_DARK
    elif choice is not ThemeChoice.SYSTEM:
        base = DARK if choice is ThemeChoice.DARK else LIGHT
    elif _high_contrast_wanted():
        base = STRONG_DARK if dark else STRONG_LIGHT
    else:
        base = DARK if dark else LIGHT
    return with_accent(base, _state.look.accent)


def _high_contrast_wanted() -> bool:
    hints = QGuiApplication.styleHints().accessibility()
    return hints.contrastPreference() == Qt.ContrastPreference.HighContrast


def compact() -> bool:
    """Return True where little room is wanted around things."""
    return _state.look.density is Density.COMPACT


def color(token: str) -> QColor:
    """Return one colour of the theme in use, by its token's name."""
    return QColor(getattr(current(), token))


def choose(choice: ThemeChoice) -> None:
    """Follow the system, or force one theme; also where the platform ignores colour schemes."""
    wear(replace(_state.look, theme=choice))


def wear(look: Look) -> None:
    """Put a look on, at once."""
    before, _state.look = _state.look, look
    scheme = {ThemeChoice.LIGHT: Qt.ColorScheme.Light, ThemeChoice.DARK: Qt.ColorScheme.Dark}
    # Native title bars follow this where the platform has them.
    QGuiApplication.styleHints().setColorScheme(scheme.get(look.theme, Qt.ColorScheme.Unknown))
    _move(look.motion)
    apply()
    if before.density is not look.density:
        notifier.density_changed.emit()


def _move(motion: Motion) -> None:
    """Let menus slide and the cursor blink as on the rest of the desktop, or not at all."""
    hints = QGuiApplication.styleHints()
    if _state.flash_time is None:
        _state.flash_time = hints.cursorFlashTime()
        _state.effects = tuple(QApplication.isEffectEnabled(effect) for effect in _EFFECTS)
    reduced = motion is Motion.REDUCED
    wanted = 0 if reduced else _state.flash_time
    if hints.cursorFlashTime() != wanted:
        hints.setCursorFlashTime(wanted)
    for effect, own in zip(_EFFECTS, _state.effects, strict=True):
        QApplication.setEffectEnabled(effect, own and not reduced)


def apply() -> None:
    """Give the application the palette and style sheet of the theme in use."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        return
    tokens = current()
    values = {name: value for name, value in asdict(tokens).items() if isinstance(value, str)}
    icons = resource("icons").as_posix()
    sheet = _style("style").substitute(values, icons=icons, mono=_mono_family[0], **_room())
    if tokens.strong:
        sheet += _style("strong").substitute(values, **_room())
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
    sizes = (_state.look.density, tokens.strong)
    notifier.restyling.emit(_state.sizes == sizes)
    _state.sizes = sizes
    # Qt dresses every widget of the page anew, which takes a moment: what was chosen is seen before.
    app.setOverrideCursor(Qt.CursorShape.WaitCursor)
    for shown in app.topLevelWidgets():
        if shown.isVisible():
            shown.repaint()
    # Without this Qt measures each widget once for every widget that it stands in: four times as long.
    app.setStyleSheet("")
    app.setPalette(palette)
    app.setStyleSheet(sheet)
    notifier.changed.emit()
    app.restoreOverrideCursor()


def _room() -> dict[str, int]:
    """Return the paddings of the density in force; a thicker frame takes its room from them."""
    room = _ROOM[_state.look.density]
    frames = {f"{name}_focus": room[name] - 1 for name in ("tall", "flat")}
    strong = {f"{name}_strong": room[name] - 2 for name in ("tall", "flat")}
    return room | frames | strong


def setup(app: QApplication, look: Look) -> None:
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
    wear(look)
    app.styleHints().colorSchemeChanged.connect(_on_system_changed)
    app.styleHints().accessibility().contrastPreferenceChanged.connect(_on_system_changed)


def _on_system_changed(_what: object) -> None:
    if _state.look.theme in (ThemeChoice.SYSTEM, ThemeChoice.HIGH_CONTRAST):
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


_style_texts: dict[str, Template] = {}


def _style(name: str) -> Template:
    if name not in _style_texts:
        path = Path(__file__).parent / "look" / f"{name}.qss"
        _style_texts[name] = Template(path.read_text(encoding="utf-8"))
    return _style_texts[name]


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

    def show_colour(self, token: str) -> None:
        """Show the same icon in another colour."""
        self._token = token
        self.paint()

    def paint(self) -> None:
        """Draw the icon in the colours of now."""
        self._button.setIcon(icon(self._name, self._token, self._pixels))
