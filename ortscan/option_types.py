"""Describe options, check their values, and derive the signature of a function from a ``TypedDict``.

class Options(TypedDict, total=False):
    fast_math: Annotated[bool, Option(False, "allow expansions that round differently", "--fast-math", ...)]
"""

import argparse
import inspect
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from ortscan.base.paths import is_path_like
from ortscan.option_texts import PAIRS
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = ["Option", "check_flags", "check_path", "count_of", "options_of", "plain_meaning", "signature_with"]


@dataclass(frozen=True)
class Option:
    """The description of an option, for the signature, the command line, sessions and the documents.

    Args:
        default: the default value.
        meaning: what the option does, in Markdown, for the documents and the docstring.
        flags: the option's names on the command line, then the name of its value. Empty if the command line defines it separately.
        help: what the option does, for the command line.
        example: an example for the documents. By default the documents show the default value.
        check: a function that returns the normalised value, or raises OptionError.
        read: a function that reads a text of the command line.
        session: a function that reads the text of a session entry. Without it, sessions do not accept the option.
        only_for_loops: True if the option changes nothing in a model without loops.
    """

    default: Any
    meaning: str
    flags: str = ""
    help: str = ""
    example: str = ""
    check: Callable[[Any], Any] = lambda value: value
    read: Callable[[str], Any] | None = None
    session: Callable[[str], Any] | None = None
    only_for_loops: bool = False

    @property
    def is_flag(self) -> bool:
        """True if the option is only on or off."""
        return self.default is False and self.read is None

    def add_to(self, group: argparse._ActionsContainer) -> None:
        """Add the option to the command line."""
        names = [word for word in self.flags.split() if word.startswith("--")]
        if self.is_flag:
            group.add_argument(*names, action="store_true", help=self.help)
            return
        metavar = self.flags.split()[-1]
        action = "append" if self.read in PAIRS else "store"
        group.add_argument(*names, type=self.read or str, action=action, default=self.default, metavar=metavar, help=self.help)

    def value_in(self, args: argparse.Namespace) -> Any:
        """Return the value of the option in ``args``, in the form that the API takes.

        If the option has (name, value) pairs and a name is repeated, the last value of the name counts.
        """
        value = getattr(args, self.flags.split()[0].lstrip("-").replace("-", "_"))
        return dict(value) if value and self.read in PAIRS else value


def options_of(kind: type) -> dict[str, Option]:
    """Return the options that the fields of a TypedDict describe, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: next(part for part in hint.__metadata__ if isinstance(part, Option)) for name, hint in hints.items()}


def signature_with(work: Callable[..., Any], kind: type) -> inspect.Signature:
    """Return the signature of ``work`` with the options of a TypedDict in place of ``**options``."""
    signature, types = inspect.signature(work), get_type_hints(kind)
    parameters = {name: parameter for name, parameter in signature.parameters.items() if parameter.kind != parameter.VAR_KEYWORD}
    keywords = [parameters.pop(name) for name, each in list(parameters.items()) if each.kind == each.KEYWORD_ONLY]
    described = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=types[name])
        for name, option in options_of(kind).items()
    ]
    return signature.replace(parameters=[*parameters.values(), *described, *keywords])


def plain_meaning(name: str, option: Option) -> str:
    """Return the line about an option in a docstring, without links."""
    meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", option.meaning)
    return f"{name}: {meaning.replace('`', '``')}."


def check_flags(**flags: Any) -> None:
    """Raise OptionError if a flag is neither True nor False."""
    for name, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):
            raise OptionError(f"{name} must be True or False, not {shown(value)}.")


def check_path(output: Any) -> None:
    """Raise OptionError if ``output`` is neither None nor a path."""
    if output is not None and not is_path_like(output):
        raise OptionError(f"output must be a path, not {shown(output)}.")


def count_of(option: str, unit: str, *, or_none: bool = False) -> Callable[[Any], int | None]:
    """Return a function that returns its argument, or raises OptionError if it is not a count (0 or more).

    Messages call the value the number of ``unit`` of ``option``. None is also valid if ``or_none`` is True.
    """

    def check(value: Any) -> int | None:
        if value is None and or_none:
            return None
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 0:
            raise OptionError(f"{option} must be a number of {unit}, 0 or more, not {shown(value)}.")
        return int(value)

    return check
