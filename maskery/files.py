"""Files appear whole or not at all: temporary name, fsync, rename; a manifest with checksums comes last."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from maskery.errors import DiskError, ExistsError, InputError

MANIFEST = "manifest.json"
_PARTIAL = ".partial-"
_DEVICES = Path("/dev")
_SURROGATE = re.compile("[\ud800-\udfff]")
"""What Python puts for bytes of a name that are no UTF-8."""
_REFUSALS = {
    errno.ENOSPC: "free some space on the disk, or choose a folder on another one",
    errno.EDQUOT: "free some of your space on the disk, or choose a folder on another one",
    errno.EFBIG: "choose a folder on a disk that takes larger files",
    errno.EIO: "the disk does not work as it should: choose a folder on another one",
    errno.EROFS: "choose a folder on a disk that can be written to",
    errno.EACCES: "choose another folder, or change its permissions",
    errno.EPERM: "choose another folder, or change its permissions",
    errno.ENOENT: "name a folder that exists, or can be made",
    errno.ENOTDIR: "name a folder, not a file",
    errno.EISDIR: "name a file, not a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
}
"""What a disk may refuse without any defect of ours, and what repairs it."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
OF_WRITING = (*_FULL, errno.EFBIG, errno.EROFS)
"""Refusals that no reading meets."""


def disk_error(error: OSError, where: str | Path | None = None) -> DiskError | None:
    """The refusal of a disk as an error with a repair; None for what is no refusal of a disk."""
    if error.errno not in _REFUSALS:
        return None
    place = where or error.filename or "disk"
    return DiskError(f"{error.strerror}{_room(error, place)}", where=str(place), repair=_REFUSALS[error.errno])


def _room(error: OSError, place: str | Path) -> str:
    if error.errno not in _FULL or not (
        found := [each for each in (Path(place), *Path(place).parents) if each.exists()]
    ):
        return ""
    return f": {shutil.disk_usage(found[0]).free:,} bytes are free"


@contextmanager
def writing(path: Path, *, reads: bool = False) -> Iterator[None]:
    """Inside it, a refusal of the disk is told as one that concerns `path`; of errors that may come from reading
    something else (`reads`) only those that cannot."""
    try:
        yield
    except OSError as error:
        told = None if reads and error.errno not in OF_WRITING else disk_error(error, path)
        raise (told or error) from None


@contextmanager
def written_by_library(path: Path) -> Iterator[None]:
    """Inside it, a library in another language writes `path`: what it tells of the system's errors as text becomes an
    error of the system again, and the file can be read by whom any new file can, not by its owner alone."""
    path.touch()
    mode = path.stat().st_mode
    try:
        yield
    except Exception as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        raise (OSError(int(found[1]), os.strerror(int(found[1]))) if found else error) from None
    path.chmod(mode)


def sync(path: Path) -> None:
    """Ask the disk to keep a file or a folder's entries."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step; a reader sees the old file or the new one."""
    with new_file(path) as file:
        file.write(data)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Write a temporary file beside `path`; on success it is synced and takes the place of `path`, else it is gone."""
    temporary = _partial(path)
    require_place(path)
    _require_no_device(path)
    require_kind(path, folder=False)
    with writing(path):
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            _forget(temporary)
            raise
        sync(path.parent)


def _forget(temporary: Path) -> None:
    """Remove a temporary file; a disk that refuses this, too, has refused something before, which is told."""
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


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


def is_described(files: Any) -> bool:
    """Whether a manifest's list of files is one: names inside the folder, with a size and a checksum each."""
    return isinstance(files, dict) and all(_is_description(name, facts) for name, facts in files.items())


def _is_description(name: str, facts: Any) -> bool:
    path = PurePosixPath(name)
    return (
        not path.is_absolute()
        and ".." not in path.parts
        and "\0" not in name
        and isinstance(facts, dict)
        and isinstance(facts.get("bytes"), int)
        and isinstance(facts.get("sha256"), str)
    )


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
    """Fill a temporary folder beside `path`; on success it is synced and takes the place of `path`, else it is removed.

    A folder that is already at `path` stays whole until then, and is removed after.
    """
    require_writable_around(path)
    require_kind(path, folder=True)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path)
    with scratch_folder(path) as temporary:
        yield temporary
        with writing(path):
            sync_inside(temporary)
            _take_place(temporary, path)
            sync(path.parent)


@contextmanager
def scratch_folder(path: Path, wanted: Path | None = None) -> Iterator[Path]:
    """A temporary folder beside `path`, gone at the end whatever happens; a kill leaves it, under a leftover's name.

    What the disk refuses inside is told of `wanted`, by default `path`: the temporary name is nobody's concern.
    """
    temporary = _partial(path)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with writing(wanted or path):
            temporary.mkdir()
        with writing(wanted or path, reads=True):
            yield temporary
    except DiskError as error:
        raise DiskError(error.cause, where=wanted or path, repair=error.repair) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sync_inside(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def _partial(path: Path) -> Path:
    return path.with_name(f"{_PARTIAL}{os.getpid()}-{path.name}")


def _take_place(made: Path, path: Path) -> None:
    """Put `made` at `path`; a folder with something in it that is there already ends up at `made`."""
    if not path.is_dir() or not any(path.iterdir()):
        os.replace(made, path)
    elif not _exchange(made, path):
        aside = made.with_name(f"{made.name}-old")
        os.replace(path, aside)
        os.replace(made, path)
        os.replace(aside, made)


def _exchange(one: Path, other: Path) -> bool:
    """Let two names change places in one step, so that there is no moment without either: Linux can, Python cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    here, exchange = -100, 2
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def remove_abandoned(path: Path) -> list[str]:
    """Delete what processes that are gone left of their attempts at `path`; the names are returned, to be told."""
    found = []
    for abandoned in path.parent.glob(f"{_PARTIAL}*-*"):
        process, _, target = abandoned.name.removeprefix(_PARTIAL).partition("-")
        if target == path.name and not _alive(process):
            shutil.rmtree(abandoned, ignore_errors=True)
            found.append(abandoned.name)
    return sorted(found)


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
    doomed = _partial(path)
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


class NotAFile(InputError):
    """Something that is read has no end or no content of its own: a pipe, a device, a socket."""


def require_regular(path: Path) -> None:
    """Refuse what would wait for a writer or never end; opening reports what is missing, or a folder."""
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
            kind = kinds.get(stat.S_IFMT(mode), "a device")
            raise NotAFile(f"is {kind}, not a file", where=path, repair="name a file")


def _require_no_device(path: Path) -> None:
    """Refuse to put a file in the place of a pipe or a device; a link such as /dev/stdout is one."""
    if path.is_symlink() and path.parent == _DEVICES:
        raise NotAFile("is a device, not a file", where=path, repair="name a file")
    require_regular(path)


def require_kind(path: Path, *, folder: bool) -> None:
    """Refuse to put a file in the place of a folder, or a folder in that of a file."""
    with writing(path):
        wrong = path.exists() and path.is_dir() != folder
    if wrong:
        cause, remove = ("file, not a folder", "rm") if folder else ("folder, not a file", "rm -r")
        raise ExistsError(f"is a {cause}", where=path, repair=f"choose another name, or remove it: {remove} {path}")


def require_place(path: Path) -> None:
    """Refuse a name under which nothing can be made: a link to nothing on the way, `..` at the end, no UTF-8."""
    if path.name == "..":
        raise InputError("is the folder around another one", where=path, repair="give the name of a new folder")
    if _SURROGATE.search(str(path)):
        shown = str(path).encode(errors="backslashreplace").decode()
        raise InputError("the name is not UTF-8", where=shown, repair="give a name in UTF-8")
    for each in (path, *path.parents):
        with writing(each):
            broken = each.is_symlink() and not each.exists()
        if broken:
            cause = f"is a link to {each.readlink()}, which is not there"
            raise InputError(cause, where=each, repair=f"remove the link, or make what it leads to: rm {each}")


def require_new_file(path: Path) -> None:
    """Refuse early a file that is there, or whose folder is not."""
    require_place(path)
    if path.exists():
        remove = "" if path.is_dir() else f", or remove it: rm {path}"
        raise ExistsError("is already there", where=path, repair=f"give another --out{remove}")
    if not path.parent.is_dir():
        raise InputError("no such folder", where=path.parent, repair=f"mkdir -p {path.parent}")
    require_writable_around(path)


def require_writable(path: Path) -> None:
    """Refuse early, before long work, a place where nothing can be written."""
    require_place(path)
    _require_access(path)


def require_writable_around(path: Path) -> None:
    """The same of the folder in which `path` is to be made, which may well be `..`."""
    require_place(path)
    _require_access(path.parent)


def _require_access(path: Path) -> None:
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        raise InputError("is a file, not a folder", where=there, repair="choose another --out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError("cannot be written to", where=there, repair="choose another --out, or change its permissions")
