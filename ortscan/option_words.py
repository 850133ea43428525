"""Name options as the reader passes them: as flags on the command line, as keywords in Python.

Errors and warnings name keywords, and the command line shows them with flags. Reports and the texts of reason codes name flags, and
Python shows them with keywords::

    fix_dims: no input has a free dimension 'X'    ->    --fix-dim: no input has a free dimension 'X'
    Compile the loop with --native.                ->    Compile the loop with native=True.
"""

import re
from collections.abc import Mapping
from typing import Any

from ortscan.verb_options import REWRITING_OPTIONS

__all__ = ["in_flags", "in_keywords", "keywords_text"]

_FLAGS = {name: option.flags.split()[0] for name, option in REWRITING_OPTIONS.items()}
_FLAGS |= {"inputs": "--inputs", "sizes": "--size", "on_difference": "--on-difference", "stop_after": "--stop-after"}
_FLAGS |= {"weights": "--weights", "max_error": "--max-error", "time_limit": "--time-limit", "memory_limit": "--memory-limit"}
_FLAGS |= {"states": "--state", "scan": "--scan", "stop": "--stop", "max_steps": "--max-steps", "counter": "--counter"}
_FLAGS |= {"initial": "--initial", "outputs": "--return", "stack": "--stack"}
_KEYWORDS = {flag: name for name, flag in _FLAGS.items()}
_SUBJECT = re.compile(rf"^({'|'.join(_FLAGS)})(?=:| must | has | gives | names )")
_ITEM = re.compile(r"^(inputs)\[('[^']*')\]")
_ANYWHERE = re.compile(rf"(?<!['\w-])(?:({'|'.join(name for name in _FLAGS if '_' in name)})\b|({'|'.join(_FLAGS)})={{\.\.\.}})")
_FLAG = re.compile(rf"(?<![\w-])({'|'.join(_KEYWORDS)})(?![\w-])( (?:[0-9]+|[A-Z])\b)?")


def in_flags(text: str) -> str:
    """Return the message of an error or a warning with flags in place of keywords.

    A keyword is replaced if the message starts with it, if its name has an underscore, or if it has the form ``inputs={...}``.
    """
    text = _ITEM.sub(lambda match: f"{_FLAGS[match[1]]}: {match[2]}", text)
    text = _SUBJECT.sub(lambda match: _FLAGS[match[1]], text)
    return _ANYWHERE.sub(lambda match: _FLAGS[match[1] or match[2]], text)


def in_keywords(text: str) -> str:
    """Return a text of a report with keywords in place of flags.

    A number or a capital letter after a flag is its value.
    """

    def keyword(match: re.Match[str]) -> str:
        name = _KEYWORDS[match[1]]
        value = "True" if name in REWRITING_OPTIONS and REWRITING_OPTIONS[name].is_flag else (match[2] or "").strip()
        return f"{name}={value}" if value else name

    return _FLAG.sub(keyword, text)


def keywords_text(options: Mapping[str, Any]) -> str:
    """Return options as they are written in a call, such as ``fix_dims={'T': 16}``."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
