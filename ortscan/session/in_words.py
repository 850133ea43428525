"""What went wrong with a model as one sentence; onnxruntime's own are not made for readers of Python."""

import re

from rewrites.base.plain_text import one_line

__all__ = ["in_words"]

_SAID = (
    (
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)",
        r"its IR version is \1, and onnxruntime reads up to \2",
    ),
    (
        r"Opset (\d+) is under development.* for domain (\S+) is till opset (\d+)",
        r"its opset of \2 is \1, and onnxruntime takes up to \3",
    ),
    (
        r"Could not find OrtValue with name ''",
        r"onnxruntime needs a name for each last value of a state of Scan or Loop, and one has none",
    ),
)
_CODE = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_PLACE = re.compile(r"\S*/onnxruntime/\S+:\d+ \S.*?\) (?=[^\s(]+ [^\s(]+ )")


def in_words(problem: BaseException | None) -> str:
    """Return what ``problem`` says, without places in onnxruntime's code."""
    said = one_line(str(problem))
    for pattern, words in _SAID:
        found = re.search(pattern, said)
        if found is not None:
            return found.expand(words)
    if _CODE.search(said):
        said = "onnxruntime says: " + _PLACE.sub("", _CODE.sub("", said).removeprefix("Exception during initialization: "))
    return said or type(problem).__name__
