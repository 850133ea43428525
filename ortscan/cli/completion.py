"""``ortscan completion bash|zsh|fish``: print a script that completes commands in a shell.

The script is generated from the parser of the command line. It completes verbs, options, and the values of options. All other words
are completed as files.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ortscan.cli.invocation import ExitCode
from ortscan.cli.streams import naming_stdout_in_errors

__all__ = ["add"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``completion`` to ``verbs``, whose other verbs the script completes."""
    parser = verbs.add_parser(
        "completion",
        help="print a script that completes commands in bash, zsh or fish",
        description="Print a script that completes verbs, options, targets, passes and reason codes in a shell.",
    )
    parser.add_argument("shell", metavar="SHELL", choices=tuple(_SCRIPTS), help="bash, zsh or fish")
    parser.set_defaults(run=partial(_run, verbs))


def _run(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", args: argparse.Namespace) -> int:
    helps = {choice.dest: choice.help or "" for choice in verbs._choices_actions}
    described = [_Verb(name, helps[name], list(_words_of(parser))) for name, parser in verbs.choices.items()]
    with naming_stdout_in_errors():
        print(_SCRIPTS[args.shell](described))
    return ExitCode.OK


@dataclass(frozen=True)
class _Word:
    """An option, or the first positional argument, whose ``names`` are empty.

    Attributes:
        names: the names of the option.
        help: what the option does.
        takes_value: True if a value follows.
        values: the values to propose. If there are none, files are proposed.
        is_list: True if the value is a list with commas.
    """

    names: Sequence[str]
    help: str
    takes_value: bool
    values: Sequence[str]
    is_list: bool


@dataclass(frozen=True)
class _Verb:
    """A verb with its options and its first positional argument."""

    name: str
    help: str
    words: Sequence[_Word]


def _words_of(parser: argparse.ArgumentParser) -> Iterator[_Word]:
    values = _values()
    is_first = True
    for action in parser._actions:
        if action.option_strings or is_first:
            key = action.option_strings[0] if action.option_strings else action.dest
            known = [str(choice) for choice in action.choices or values.get(key) or _words_in(action.metavar)]
            is_list = key in ("--passes", "--skip", "--fail-on")
            yield _Word(action.option_strings, action.help or "", action.nargs != 0, known, is_list)
        is_first = is_first and bool(action.option_strings)


def _values() -> dict[str, Sequence[str]]:
    """Return the values of arguments that have no choices, by option or name."""
    from ortscan.ort.runtimes import known_runtimes
    from ortscan.report.codes import CODES
    from ortscan.rule_choice import rule_names
    from ortscan.targets import TARGETS

    return {
        "subject": list(CODES),
        "--fail-on": list(CODES),
        "--target": list(TARGETS),
        "--passes": ["default", *rule_names()],
        "--skip": rule_names(),
        "--runtime": list(known_runtimes()),
    }


def _words_in(metavar: str | tuple[str, ...] | None) -> list[str]:
    """Return the words of a metavar such as ``auto|keep|N`` that are values themselves."""
    return [word for word in str(metavar).split("|") if word.islower()] if "|" in str(metavar) else []


_BASH = """_ortscan() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} head= words=
    if [[ $cur == "=" ]]; then cur=; elif [[ $before == "=" ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    COMPREPLY=()
    if [[ $COMP_CWORD == 1 ]]; then
        words="{verbs}"
    else
        case "${{COMP_WORDS[1]}} $before" in
{values}
        esac
        if [[ -z $words ]]; then
            case "${{COMP_WORDS[1]}} $COMP_CWORD $cur" in
{flags}
            esac
        elif [[ $head == list && $cur == *,* ]]; then
            head=${{cur%,*}}, cur=${{cur##*,}}
        fi
        [[ $head == list ]] && head=
    fi
    [[ -n $words ]] && COMPREPLY=( $(compgen -W "$words" -P "$head" -- "$cur") )
}}
complete -o default -F _ortscan ortscan"""


def _bash(verbs: Sequence[_Verb]) -> str:
    values, flags = [], []
    for verb in verbs:
        for word in verb.words:
            if word.values and word.names:
                names = "|".join(f'"{verb.name} {name}"' for name in word.names)
                values.append(f'            {names}) words="{" ".join(word.values)}"{" head=list" if word.is_list else ""};;')
            elif word.values:
                start = '*" "[A-Z]' if verb.name == "explain" else '"2 "'
                flags.append(f'                "{verb.name} "{start}*) words="{" ".join(word.values)}";;')
        names = " ".join(name for word in verb.words for name in word.names)
        flags.insert(0, f'                "{verb.name} "*" -"*) words="{names}";;')
    shown = " ".join(["--help --version", *(verb.name for verb in verbs)])
    return _BASH.format(verbs=shown, values="\n".join(values), flags="\n".join(flags))


def _zsh(verbs: Sequence[_Verb]) -> str:
    start = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\nautoload -Uz bashcompinit && bashcompinit"
    return f"{start}\n{_bash(verbs)}"


def _fish(verbs: Sequence[_Verb]) -> str:
    lines = [f"complete -c ortscan -f -n __fish_use_subcommand -a {verb.name} -d {_quoted(verb.help)}" for verb in verbs]
    for verb in verbs:
        start = f"complete -c ortscan -n '__fish_seen_subcommand_from {verb.name}'"
        for word in verb.words:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in word.names)
            proposed = f"(__fish_append , {' '.join(word.values)})" if word.is_list else " ".join(word.values)
            value = f" -a '{proposed}'" if word.values else ""
            how = f" -{'x' if word.values else 'r'}" if word.names and word.takes_value else ""
            about = f" -d {_quoted(word.help)}" if word.names else ""
            if word.names or value:
                lines.append(" ".join(filter(None, [start, names])) + f"{how}{value}{about}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    short = text.partition(";")[0].partition(" (")[0]
    return "'" + short.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SCRIPTS: dict[str, Callable[[Sequence[_Verb]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
