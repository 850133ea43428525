"""The documentation page of the command line, generated from its parser."""

import argparse
from collections.abc import Iterable, Iterator

from ortscan.cli.command import build_parser

__all__ = ["as_document", "options_of_verbs"]

_HEAD = """# Command line

Made by `python -m tests.support.tables`.

```sh
ortscan VERB ARGUMENTS    # also: python -m ortscan
```

`ortscan --version` shows the versions of ortscan, onnx and onnxruntime. `ortscan VERB --help` prints the same texts as this page.
The [exit codes](exit-codes.md) are the same for all verbs. [Optimise before deployment](../how-to/deploy.md#files-and-folders) explains
pipes and folders.
"""


def as_document() -> str:
    """Return the page: a section for each verb, then the options that several verbs have."""
    parts = [_HEAD]
    for name, verb in _verbs().items():
        rows = [(_spelling(action), _help(action)) for action in _actions(verb) if not _is_shared(action)]
        parts.append(f"## {name}\n\n{verb.description}\n\n{_table(['argument', 'meaning'], rows)}")
    parts.append(f"## Options of several verbs\n\n{_table(['option', 'verbs', 'meaning'], _shared())}")
    return "\n".join(parts)


def options_of_verbs() -> set[str]:
    """Return every option of every verb, such as ``--fast-math``."""
    return {option for verb in _verbs().values() for action in _actions(verb) for option in action.option_strings}


def _verbs() -> dict[str, argparse.ArgumentParser]:
    return next(dict(action.choices) for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))


def _actions(verb: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in verb._actions if not isinstance(action, argparse._HelpAction))


def _is_shared(action: argparse.Action) -> bool:
    return bool(action.option_strings) and len(_verbs_with(action)) > 1


def _verbs_with(action: argparse.Action) -> list[str]:
    wanted = (action.option_strings, action.help)
    return [name for name, verb in _verbs().items() if any((each.option_strings, each.help) == wanted for each in _actions(verb))]


def _shared() -> Iterable[tuple[str, str, str]]:
    actions = [action for verb in _verbs().values() for action in _actions(verb) if _is_shared(action)]
    return dict.fromkeys(
        (_spelling(action), ", ".join(f"`{name}`" for name in _verbs_with(action)), _help(action)) for action in actions
    )


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        value = action.metavar or "{" + ",".join(map(str, action.choices or ())) + "}"
        return _code(str(value))
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    value = "" if action.nargs == 0 else f" {action.metavar or choices}"
    return ", ".join(_code(f"{option}{value}") for option in action.option_strings)


def _code(text: str) -> str:
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%").replace("|", "&#124;")


def _table(titles: list[str], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in [tuple(titles), ("---",) * len(titles), *rows])
