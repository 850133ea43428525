"""How deep the brackets of a model in ONNX text are nested: its parser calls itself for each, which ends the process in the end.

Works round ONNX-TEXT-DEPTH.
"""

import re

__all__ = ["DEEPEST_BRACKETS", "nests_too_deep"]

DEEPEST_BRACKETS = 256
"""A graph within a graph takes three; no file can hold more than about 30 of those."""

_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|[][(){}]', re.DOTALL)


def nests_too_deep(text: str) -> bool:
    """Whether brackets are open more than DEEPEST_BRACKETS deep somewhere in ``text``, strings and comments left out."""
    depth = 0
    for token in _TOKENS.finditer(text):
        mark = text[token.start()]
        if mark in "([{":
            depth += 1
            if depth > DEEPEST_BRACKETS:
                return True
        elif mark in ")]}":
            depth -= 1
    return False
