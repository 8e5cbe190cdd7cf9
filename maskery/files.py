"""Files appear whole or not at all: temporary name, fsync, rename; a manifest with checksums comes last."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskery.errors import InputError

MANIFEST = "manifest.json"
_PARTIAL = ".partial-"


def sync(path: Path) -> None:
    """Ask the disk to keep a file or a folder's entries."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step; a reader sees the old file or the new one."""
    temporary = path.with_name(f"{_PARTIAL}{os.getpid()}-{path.name}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Size and checksum of each named file, for a manifest."""
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": checksum(folder / name)} for name in sorted(names)
    }


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of itself, so that a changed byte in it is seen, too."""
    return {**manifest, "seal": _seal(manifest)}


def seal_broken(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("seal") != _seal({key: value for key, value in manifest.items() if key != "seal"})


def _seal(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def damage(folder: Path, files: Mapping[str, Mapping[str, Any]], *, full: bool) -> list[str]:
    """What differs from the manifest, one sentence for each file; sizes only unless `full`."""
    found = []
    for name, facts in files.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif path.stat().st_size != facts["bytes"]:
            found.append(f"{name} has {path.stat().st_size} bytes, the manifest says {facts['bytes']}")
        elif full and checksum(path) != facts["sha256"]:
            found.append(f"{name} does not match its checksum: some byte has changed since it was written")
    return found


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder beside `path`; on success it is synced and renamed to `path`, else removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in path.parent.glob(f"{_PARTIAL}*-{path.name}"):
        if not _alive(abandoned.name.removeprefix(_PARTIAL).partition("-")[0]):
            shutil.rmtree(abandoned, ignore_errors=True)
    temporary = path.with_name(f"{_PARTIAL}{os.getpid()}-{path.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in sorted(temporary.rglob("*")):
            sync(file)
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _alive(process: str) -> bool:
    """Whether the process that a partial folder is named after may still be filling it."""
    if not process.isdecimal() or int(process) == os.getpid():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def remove_folder(path: Path) -> None:
    """Delete a folder; a kill on the way leaves nothing that looks whole."""
    doomed = path.with_name(f"{_PARTIAL}{os.getpid()}-{path.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(path, doomed)
    shutil.rmtree(doomed)


def is_leftover(path: Path) -> bool:
    """Whether an interrupted write or removal made this."""
    return path.name.startswith(_PARTIAL)


def remove_leftovers(folder: Path) -> list[str]:
    """Delete what an interrupted write left behind in `folder`; the names are returned, to be told."""
    removed = []
    for path in folder.glob(f"{_PARTIAL}*") if folder.is_dir() else ():
        removed.append(path.name)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return removed


def require_writable(path: Path) -> None:
    """Refuse early, before long work, a place where nothing can be written."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        raise InputError("is a file, not a folder", where=there, repair="choose another --out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError("cannot be written to", where=there, repair="choose another --out, or change its permissions")
