"""Asked by ssh for a person's answer: passes the question to the host's socket and prints what it hears.

Standard library only: `python -I -S askpass_main.py PROMPT`. Where the host does not answer, ssh is refused.
"""

import json
import os
import socket
import sys

_LARGEST = 1 << 16


def main(arguments: list[str]) -> int:
    """Ask, print the answer, and return 0; 1 for a refusal."""
    asked = {
        "attempt": os.environ.get("SNDR_ASKPASS_ATTEMPT", ""),
        "prompt": arguments[1] if len(arguments) > 1 else "",
        "hint": os.environ.get("SSH_ASKPASS_PROMPT", ""),
    }
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(os.environ["SNDR_ASKPASS_SOCKET"])
        door.sendall(json.dumps(asked).encode() + b"\n")
        raw = b""
        while not raw.endswith(b"\n") and len(raw) < _LARGEST:
            part = door.recv(4096)
            if not part:
                return 1
            raw += part
    told = json.loads(raw)
    if not told["accept"]:
        return 1
    sys.stdout.write(told["answer"] + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv))
    except (OSError, ValueError, KeyError):
        sys.exit(1)
