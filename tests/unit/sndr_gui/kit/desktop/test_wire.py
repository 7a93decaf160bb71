"""Messages as a real bus (dbus-daemon 1.14) and a real desktop (dunst 1.9) sent and took them."""

import contextlib

import pytest

from sndr_gui.kit.desktop.wire import CALL, REPLY, SIGNAL, Message, length, read

WELCOME = (
    "6c0201010a000000010000003d00000006017300050000003a312e32330000000501750001000000080167000173000007017300140000"
    "006f72672e667265656465736b746f702e4442757300000000050000003a312e323300"
)
SERVER = (
    "6c020101380000000e0000003500000006017300050000003a312e323300000008016700047373737300000000000000050175000300"
    "000007017300040000003a312e30000000000500000064756e7374000000070000006b6e6f70776f620012000000312e392e30202832"
    "3032322d30362d323729000003000000312e3200"
)
NOTIFY = (
    "6c01000184000000020000009b00000001016f001e0000002f6f72672f667265656465736b746f702f4e6f74696669636174"
    "696f6e730000020173001d0000006f72672e667265656465736b746f702e4e6f74696669636174696f6e7300000003017300"
    "060000004e6f746966790000060173001d0000006f72672e667265656465736b746f702e4e6f74696669636174696f6e7300"
    "0000080167000d73757373736173617b73767d69000000000000010000005300000000000000010000006900000001000000"
    "740000000100000062000000150000000700000064656661756c74000400000053686f770000000038000000000000000d00"
    "00006465736b746f702d656e7472790001730000000004000000736e6472000000000000000007000000757267656e637900"
    "01790001ffffffff"
)
PLACE = "org.freedesktop.Notifications"


def test_what_a_real_bus_sent_is_read() -> None:
    data = bytes.fromhex(WELCOME)
    assert length(data[:16]) == len(data)
    assert read(data) == Message(REPLY, 1, reply_to=1, destination=":1.23", signature="s", body=(":1.23",))
    assert read(bytes.fromhex(SERVER)).body == ("dunst", "knopwob", "1.9.0 (2022-06-27)", "1.2")


def test_a_notification_is_the_bytes_that_a_real_desktop_took() -> None:
    hints = {"desktop-entry": ("s", "sndr"), "urgency": ("y", 1)}
    body = ("S", 0, "i", "t", "b", ["default", "Show"], hints, -1)
    path = "/" + PLACE.replace(".", "/")
    sent = Message(CALL, 2, path, PLACE, "Notify", 0, PLACE, "susssasa{sv}i", body)
    assert sent.packed().hex() == NOTIFY
    back = read(sent.packed())
    assert back.body[6] == [("desktop-entry", "sndr"), ("urgency", 1)]
    assert (back.member, back.destination) == ("Notify", PLACE)


def test_every_kind_of_value_comes_back() -> None:
    body = (True, -3, 2**40, 1.5, [(1, "ä"), (2, "")], ("v", ("s", "deep")))
    sent = Message(SIGNAL, 9, "/a", "b.c", "D", signature="bnxda(us)v", body=body)
    assert read(sent.packed()).body == (1, -3, 2**40, 1.5, [(1, "ä"), (2, "")], "deep")


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_a_damaged_message_is_refused(cut: int) -> None:
    data = bytearray(bytes.fromhex(NOTIFY))
    with pytest.raises(ValueError, match=r"."):
        read(bytes(data[: len(data) - 1 - cut]))
    data[cut] ^= 0xFF
    with contextlib.suppress(ValueError):
        read(bytes(data))


@pytest.mark.parametrize("begin", [b"x" * 16, b"l" + b"\x01" * 3 + b"\xff" * 12])
def test_no_message_has_no_length(begin: bytes) -> None:
    with pytest.raises(ValueError, match="message"):
        length(begin)


@pytest.mark.parametrize("signature", ["a", "(s", "{sv", "!", "a" * 40 + "s"])
def test_no_signature_is_refused(signature: str) -> None:
    with pytest.raises(ValueError, match="signature"):
        Message(SIGNAL, 1, signature=signature, body=("",)).packed()
