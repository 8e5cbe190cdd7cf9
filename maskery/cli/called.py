"""How this program is called, for commands that are printed to be copied: an installation in an environment that is not
activated is not on the path."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME = "maskery"


def program() -> str:
    """`maskery` where a shell finds it, else the script beside this Python, else this Python with `-m`."""
    if shutil.which(NAME) is not None:
        return NAME
    python = Path(sys.executable)
    script = python.with_name(NAME)
    if os.access(script, os.X_OK):
        return shlex.quote(_near(script))
    return f"{shlex.quote(_near(python))} -m {NAME}"


def _near(path: Path) -> str:
    """Below the working directory as a relative path."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
