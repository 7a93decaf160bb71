"""Hardware as a question names it: `2x rtx-3090`."""

import re

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

# As many as a machine of the catalogue has.
MOST_GPUS = 8
_COUNTED = re.compile(r"(?:(?P<count>\d+)\s*[x×]\s*)?(?P<name>\S.*)")


def counted(text: str) -> tuple[int, str]:
    """Parse `2x rtx-3090` into a count and a hardware name; the count is one if not given.

    Raises HostError(bad_request) for a number that no machine has.
    """
    found = _COUNTED.fullmatch(text.strip())
    if found is None:
        return 1, text
    count = int(found["count"] or 1)
    if not 1 <= count <= MOST_GPUS:
        raise HostError(
            Reason.BAD_REQUEST,
            tr(
                "{count} GPUs cannot be computed for: it is 1 to {most_gpus}.",
                count=count,
                most_gpus=MOST_GPUS,
            ),
            fix="Give another number before the name of the hardware.",
            evidence={"field": "hardware"},
        )
    return count, found["name"]
