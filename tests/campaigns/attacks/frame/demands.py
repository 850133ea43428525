"""What must come of an attack."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ortscan.__main__ import main
from ortscan.errors import OrtscanError

__all__ = ["another", "command", "refused", "survived"]

_ROOT = Path(__file__).parents[4]
_LONGEST = 4000
_EXIT_CODES = (0, 1, 2, 3, 4)


def refused(call: Callable[[], object], *words: str) -> OrtscanError:
    """Demand that ``call`` raises an OrtscanError: one line that holds ``words``. Anything else it raises goes on its way."""
    error = survived(call)
    assert isinstance(error, OrtscanError), f"nothing was raised; given: {str(error)[:200]}"
    missing = [word for word in words if word not in str(error)]
    assert not missing, f"{missing} not in: {error}"
    return error


def survived(call: Callable[[], Any]) -> Any:
    """Demand that ``call`` gives something or raises an OrtscanError of one line; give either."""
    try:
        return call()
    except OrtscanError as error:
        _one_sentence(str(error))
        return error


def command(*arguments: object) -> tuple[int, str, str]:
    """Run the command line here; demand an exit code of its own and, of an error, one line. Give the code and what was printed."""
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = main([os.fspath(each) if isinstance(each, os.PathLike) else str(each) for each in arguments])
    assert code in _EXIT_CODES, f"exit code {code}: {said.getvalue()}"
    errors = [line for line in said.getvalue().splitlines() if line.startswith("ortscan: error:")]
    assert len(errors) == (code in (1, 3)) or code == 2, said.getvalue()
    assert "internal error" not in said.getvalue(), said.getvalue()
    for line in errors:
        _one_sentence(line)
    return code, out.getvalue(), said.getvalue()


def another(code: str, *arguments: object, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run Python code in one more process, with ``arguments``, and give how that went."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    line = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=seconds, check=False)


def _one_sentence(text: str) -> None:
    assert text, "the error says nothing"
    assert len(text.splitlines()) == 1, f"not one line: {text!r}"
    assert len(text) <= _LONGEST, f"{len(text)} characters: {text[:200]}…"
