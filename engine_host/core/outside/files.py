"""Files that somebody else may have put there: only regular ones are opened, and only so much is read.

Opening a pipe waits for ever and reading a device never ends, so a path is opened without waiting, and what
it leads to is looked at before a byte is read.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def expanded(name: str) -> Path:
    """Return the path that a person wrote; `~` of a user that does not exist stays as it is.

    No file has a NUL in its name: with one the path leads nowhere.
    """
    return Path(os.path.expanduser(name.replace("\0", "\N{REPLACEMENT CHARACTER}")))


def is_text(path: Path) -> bool:
    """Return True if a path can be told in UTF-8; a file's name is bytes, and may be any."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def open_regular(path: Path, *, buffering: int = -1, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading. Raises OSError, also for a folder, a pipe, a device or a socket.

    With `follow` off also for a link.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    except ValueError as error:
        # A name with a NUL in it, which no system has.
        raise OSError(errno.EINVAL, "that is no name of a file") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return os.fdopen(handle, "rb", buffering)
    except BaseException:
        os.close(handle)
        raise


def read(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file. Raises OSError, also for one of more than `most` bytes."""
    with open_regular(path) as file:
        # As much as there is: a buffer for the most that there may be would take that much memory.
        size = os.fstat(file.fileno()).st_size
        content = file.read(min(size, most) + 1)
        while size < most and len(content) > size:
            # It grew meanwhile, or says of itself that it is empty, as files of /proc do.
            size = min(2 * len(content), most)
            content += file.read(size + 1 - len(content))
    if len(content) > most:
        raise OSError(errno.EFBIG, "it is larger than any such file")
    return content


def read_text(path: Path, most: int) -> str:
    """Return the text of a regular file in UTF-8. Raises OSError, UnicodeDecodeError."""
    return read(path, most).decode("utf-8")
