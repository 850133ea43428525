"""The parser of the command line. It reports an error in one line, with the nearest valid word."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from rewrites.base.plain_text import did_you_mean, near_names, one_line, sentence

__all__ = ["Parser", "VerbParser"]

_USAGE = 2
_SUBJECT = re.compile(r"^argument ([^\s/:]+)\S*: ")
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)$", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line of limited length, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Exit with ``message`` and a suggestion."""
        self.exit(_USAGE, f"ortscan: error: {sentence(one_line(self._in_words(message)))}\n")

    def _in_words(self, message: str) -> str:
        subject = _SUBJECT.match(message)
        if subject is not None:
            message = f"{subject[1]}: {message[subject.end() :]}"
        choice = _CHOICE.search(message)
        if choice is not None:
            words = re.findall(r"[\w-]+", choice[2])
            return f"{message[: choice.start()]}'{choice[1]}' is not one of {', '.join(words)}{did_you_mean(choice[1], words)}."
        option = re.search(r"unrecognized arguments:.*?--([\w-]+)", message)
        near = near_names(option[1], [name.lstrip("-") for name in self.options()]) if option is not None else []
        meant = f", perhaps '--{near[0]}' was meant" if near else ""
        return f"{message}{meant}." if meant or subject else f"{message}; {self.prog} --help shows what is valid."

    def options(self) -> Iterator[str]:
        """Yield the options of this parser and of its verbs."""
        for action in self._actions:
            yield from action.option_strings
            for verb in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
                yield from verb.options() if isinstance(verb, Parser) else ()


class VerbParser(Parser):
    """A parser that accepts options before, between and after the files.

    argparse alone does not accept options between files if a file is optional.
    """

    _within = False

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse the arguments with ``parse_known_intermixed_args``, which calls this method again."""
        if self._within:
            return super().parse_known_args(args, namespace)
        self._within = True
        try:
            parsed, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown
