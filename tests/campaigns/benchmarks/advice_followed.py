"""Follows the advice that ``ortscan explain`` gives on models of real exporters, and says how much of it does what it says.

``python -m tests.campaigns benchmarks.advice_followed FOLDER [NAME ...]``: each line is put on the command line of ``ortscan optimize`` as it
stands; it holds where the result is written (so it was found equal), the loop has the fate that was said, and ``ortscan bench`` finds
it faster than without at the size that was said.
"""

import contextlib
import io
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ortscan
from ortscan.__main__ import main
from ortscan.modelio import with_constant_inputs
from rewrites.base.errors import OrtscanError

__all__ = ["follow"]


def follow(path: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each line of advice on the model at ``path``, and what was wrong with it, or nothing."""
    report = _printed("explain", str(path))["report"]
    plain = folder / "plain.onnx"
    lines = {advice["flags"]: (loop, advice) for loop in report["loops"] for advice in loop["advice"]}
    if lines:
        _printed("optimize", str(path), str(plain), "--no-verify")
    for flags, (loop, advice) in lines.items():
        try:
            yield advice["text"], _fault(path, plain, folder / "followed.onnx", flags, loop["where"], advice)
        except OrtscanError as error:
            yield advice["text"], str(error)


def _fault(path: Path, plain: Path, out: Path, flags: str, where: str, advice: dict) -> str:
    out.unlink(missing_ok=True)
    document = _printed("optimize", str(path), str(out), *shlex.split(flags))
    if not out.exists():
        return "not written"
    fates = {loop["where"]: loop["fate"] for loop in document["report"]["loops"]}
    if fates.get(where) != advice["fate"]:
        return f"the loop is {fates.get(where)}, not {advice['fate']}"
    if advice["seconds"] is None:
        return ""
    given = advice["options"]
    before = with_constant_inputs(str(plain), given.get("fix_inputs"), given.get("freeze", False))
    bench = ortscan.bench(before, str(out), sizes=advice["at"] or None, seconds=2)
    return "" if bench.results[0].ratio().is_faster else f"bench: {bench.in_short()}"


def _printed(*words: str) -> dict:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        main([*words, "--json"])
    return json.loads(out.getvalue() or '{"report": {"loops": []}}')


def _run(folder: Path, names: list[str]) -> None:
    kept = 0
    total = 0
    for path in sorted(folder.glob("*.onnx")):
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            for text, fault in follow(path, Path(scratch)):
                total, kept = total + 1, kept + (not fault)
                print(f"{path.stem}: {text}: {fault or 'holds'}", flush=True)
    print(f"{kept} of {total} lines of advice do what they say ({kept / max(1, total):.0%})")


if __name__ == "__main__":
    _run(Path(sys.argv[1]), sys.argv[2:])
