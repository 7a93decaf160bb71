"""`python -m engine_host` is `sndr`."""

import sys

from engine_host.cli import main

if __name__ == "__main__":
    sys.exit(main())
