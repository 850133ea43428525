"""The identity of a model's content, and of the files its external data is in.

The content of a file is read once: what was found is noted under the file's path, size and times, and holds as long as those do.
A file changed so shortly before it was read that its times could not tell a later change is read again, as git does. A program that
writes through a memory map moves a file's times only with its first write to a page since that page went to disk. So files go to
disk before they are read; a large one, where that may take long, is read again while it is likely that not all of it is there.
"""

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ortscan.cache.notes import Notes

__all__ = [
    "Identity",
    "Noted",
    "TIME_STEP_NS",
    "digest_of_bytes",
    "digest_of_file",
    "digests_of_files",
    "identity_of_file",
    "lives_in_memory",
    "note_digests",
    "noted_digests",
    "shows_changes",
]

_MOUNTS = Path("/proc/self/mountinfo")
_KINDS = (b"tmpfs", b"ramfs", b"hugetlbfs", b"devtmpfs")


Identity = list[int | str]
Noted = tuple[Identity, str]
"""What a file was, and the digest of what was in it then."""


_CHUNK = 4 << 20
_THREADS = 4
TIME_STEP_NS = 2_000_000_000
_WRITTEN_BACK_NS = 60_000_000_000
_SMALL = 64 << 20


def digest_of_bytes(content: bytes | memoryview) -> str:
    """Return a digest of all of ``content``: of the digests of its chunks, which several threads make."""
    view = memoryview(content)
    return _digest(len(view), lambda start: view[start : start + _CHUNK])


def _digest(size: int, chunk: Callable[[int], bytes | memoryview]) -> str:
    def digest(start: int) -> bytes:
        return hashlib.sha256(chunk(start)).digest()

    starts = range(0, size, _CHUNK)
    workers = min(_THREADS, os.cpu_count() or 1, len(starts))
    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(digest, starts))
    else:
        parts = [digest(start) for start in starts]
    return hashlib.sha256(b"".join(parts) + str(size).encode()).hexdigest()


def digest_of_file(path: str) -> str:
    """Return ``digest_of_bytes`` of what is in a file, of which no more than a chunk for each thread is in memory."""

    def chunk(start: int) -> bytes:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(_CHUNK)

    return _digest(os.path.getsize(path), chunk)


def identity_of_file(path: str) -> Identity:
    """Return what tells whether the file at ``path`` is still the same without reading it. Raises OSError.

    The time of its last change of any kind comes last: one written anew may be given its old time of modification.
    """
    status = os.stat(path)
    return [os.path.realpath(path), status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev, status.st_ctime_ns]


def digests_of_files(paths: Sequence[str], notes: Notes) -> list[str]:
    """Return the digest of each of the files. Raises OSError."""
    noted = noted_digests(paths, notes)
    digests, fresh = [], dict[str, Noted]()
    for path in paths:
        identity = identity_of_file(path)
        if path in noted and noted[path][0] == identity:
            digests.append(noted[path][1])
            continue
        can_be_told = shows_changes(path, identity)
        noted.pop(path, None)
        digest = digest_of_file(path)
        digests.append(digest)
        if can_be_told and identity_of_file(path) == identity:
            fresh[path] = (identity, digest)
    if fresh:
        note_digests(paths, notes, noted | fresh)
    return digests


def noted_digests(paths: Sequence[str], notes: Notes) -> dict[str, Noted]:
    """Return what is noted of those of the files that anything is noted of, true or not any more."""
    known = notes.read(_name(paths))
    found = {path: known.get(os.path.realpath(path)) for path in paths}
    return {
        path: (note[0], note[1]) for path, note in found.items() if isinstance(note, list) and list(map(type, note)) == [list, str]
    }


def note_digests(paths: Sequence[str], notes: Notes, found: Mapping[str, Noted]) -> None:
    """Note the digests of those of the files that are ``found``, where that is possible."""
    notes.write(_name(paths), {str(identity[0]): [identity, digest] for identity, digest in found.values()})


def shows_changes(path: str, identity: Identity) -> bool:
    """Return whether every change of the file from now on moves its times; the file goes to disk to that end."""
    age = time.time_ns() - _last_change(identity)
    if age <= TIME_STEP_NS or (age <= _WRITTEN_BACK_NS and int(identity[1]) > _SMALL):
        return False
    if os.name == "nt":  # only who may write to a file can have it go to disk there
        return True
    try:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    except OSError:
        return False
    return not lives_in_memory(int(identity[4]))


def _name(paths: Sequence[str]) -> str:
    return "\0".join(map(os.path.realpath, paths))


def _last_change(identity: Identity) -> int:
    """Return the time of a file's last change; of its last modification where the system keeps no other."""
    return int(identity[2] if os.name == "nt" else identity[-1])


def lives_in_memory(device: int) -> bool:
    """Return whether the files of ``device`` (``st_dev``) live in memory, as far as the system says so.

    There, writing through a memory map does not move a file's times.
    """
    with suppress(OSError):
        there = f"{os.major(device)}:{os.minor(device)}".encode()
        for line in _MOUNTS.read_bytes().splitlines():
            place, _, kind = line.partition(b" - ")
            if place.split(b" ", 3)[2:3] == [there]:
                return kind.split(b" ", 1)[0] in _KINDS
    return False
