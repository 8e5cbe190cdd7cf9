"""`python -m maskery` is the command `maskery`."""

from __future__ import annotations

import sys

from maskery.cli import main

if __name__ == "__main__":
    sys.exit(main())
