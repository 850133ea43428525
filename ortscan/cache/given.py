"""Whether a model given as bytes is the one an entry was made from: told by comparing all of it, which costs less than a digest.

Most of a model's bytes are weights that its optimised model holds too. So an entry notes which stretches of the two are the same
(``runs``: where in the optimised model, where in the given one, how long), and keeps only the rest of what was given. Comparing
reads the optimised model once and shows on the way that it is whole.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ortscan.cache.checks import BLOCK, CHECK_SIZE, blocks_of, check_of
from ortscan.cache.own_files import open_own

__all__ = ["Run", "is_made_from", "rest_of", "runs_between", "sample_of"]

Run = Sequence[int]
_PROBE = 64
_STEP = 64 << 10
_NEAR = 1 << 20
_SAMPLES = 64
_EDGE = 16 << 10


def sample_of(given: bytes) -> str:
    """Return a digest of some of the bytes: a name under which to look for what may be made from them."""
    step = max(len(given) // _SAMPLES, 1)
    parts = [given[:_EDGE], given[-_EDGE:], *(given[start : start + _PROBE] for start in range(0, len(given), step))]
    return hashlib.sha256(b"".join(parts) + str(len(given)).encode()).hexdigest()


def runs_between(content: bytes, given: bytes) -> list[tuple[int, int, int]]:
    """Return long stretches that both hold, in the order of ``given``; not all of them, for the search must end."""
    runs, at, start = [], 0, 0
    step = max(_STEP, len(given) >> 12)
    budget = 4 * len(content) + 64 * _NEAR
    while start + _PROBE <= len(given):
        probe = given[start : start + _PROBE]
        found = at if content.startswith(probe, at) else content.find(probe, at, at + _NEAR)
        budget -= _NEAR
        if found < 0 and budget > 0:
            found = content.find(probe)
            budget -= len(content)
        length = _same(content, found, given, start) if found >= 0 else 0
        if length < _STEP:
            start += step
            continue
        runs.append((found, start, length))
        at, start = found + length, start + length
    return runs


def _same(content: bytes, at: int, given: bytes, start: int) -> int:
    """Count the bytes from ``at`` on that are those from ``start`` on."""
    most = min(len(content) - at, len(given) - start)
    length, step = 0, _NEAR
    while step:
        while length + step <= most and content[at + length : at + length + step] == given[start + length : start + length + step]:
            length += step
        step >>= 1
    return length


def rest_of(given: bytes, runs: Sequence[Run]) -> bytes:
    """Return what of ``given`` is in no run."""
    return b"".join(given[start:stop] for start, stop in _gaps(len(given), runs))


def _gaps(size: int, runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    done = 0
    for _, start, length in (*runs, (0, size, 0)):
        if start > done:
            yield done, start
        done = start + length


def is_made_from(given: bytes, size: int, runs: Sequence[Run], rest: Path, model: Path | None, checks: str) -> bool:
    """Whether ``given`` is the model of ``size`` bytes that ``runs`` and ``rest`` were made of, and ``model`` is whole."""
    if len(given) != size:
        return False
    view = memoryview(given)
    with suppress(OSError):
        return _is_rest(view, runs, rest) and (model is None or _is_model(view, runs, model, checks))
    return False


def _is_rest(given: memoryview, runs: Sequence[Run], rest: Path) -> bool:
    gaps = list(_gaps(len(given), runs))
    if rest.stat().st_size != sum(stop - start for start, stop in gaps):
        return False
    room = bytearray(BLOCK)
    with open_own(rest) as file:
        for start, stop in gaps:
            at = start
            while at < stop:
                size = file.readinto(memoryview(room)[: min(BLOCK, stop - at)])
                if not size or not _is_at(room, 0, size, given, at):
                    return False
                at += size
    return True


def _is_model(given: memoryview, runs: Sequence[Run], model: Path, checks: str) -> bool:
    pieces = _pieces(runs)
    end = 0
    for number, room, size in blocks_of(model):
        covered = False
        for first, last, there in pieces.get(number, ()):
            if not _is_at(room, first, last, given, there):
                return False
            covered = covered or (first == 0 and last == size)
        if not covered and check_of(room, size) != checks[number * CHECK_SIZE : (number + 1) * CHECK_SIZE]:
            return False
        end = number * BLOCK + size
    return len(checks) == -(-end // BLOCK) * CHECK_SIZE and all(at + length <= end for at, _, length in runs)


def _pieces(runs: Sequence[Run]) -> dict[int, list[tuple[int, int, int]]]:
    """Cut runs at the blocks of the optimised model: for each block from where to where in it, and where in the given model."""
    pieces: dict[int, list[tuple[int, int, int]]] = {}
    for at, start, length in runs:
        for number in range(at // BLOCK, -(-(at + length) // BLOCK)):
            first, last = max(at, number * BLOCK), min(at + length, (number + 1) * BLOCK)
            pieces.setdefault(number, []).append((first - number * BLOCK, last - number * BLOCK, start + first - at))
    return pieces


def _is_at(room: bytearray, first: int, last: int, given: memoryview, start: int) -> bool:
    """Compare part of a room with what is given from ``start`` on, by the C library where the left side is a bytearray."""
    there = given[start : start + last - first]
    return room == there if last - first == len(room) else room[first:last] == there
