"""Read the options of a session from the entries ``ortscan.*`` of its SessionOptions.

onnxruntime accepts entries that it does not know. So options also reach sessions that third-party code creates, if this code uses
the caller's SessionOptions.
"""

import argparse
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ortscan.base.messages import warn
from ortscan.cache.location import check_folder
from ortscan.option_texts import read_byte_size, read_flag
from ortscan.ort.sessions import entry_of
from ortscan.verb_options import OPTIMIZE_OPTIONS
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, near_names, shown

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["KNOWN", "OPTIONS", "PREFIX", "Settings", "entry_texts", "pop_options", "read_settings", "warn_of_mistyped"]

PREFIX = "ortscan."


def _folder(text: str) -> str:
    return str(check_folder(text, f"the session option {PREFIX}cache_dir"))


OPTIONS: dict[str, Callable[[str], Any]] = {
    name: option.session for name, option in OPTIMIZE_OPTIONS.items() if option.session is not None
}
"""The options of ``optimize`` that a session accepts, each with the function that reads it."""

_OWN: dict[str, Callable[[str], Any]] = {
    "enable": read_flag,
    "strict": read_flag,
    "cache": read_flag,
    "cache_dir": _folder,
    "cache_size": read_byte_size,
}

KNOWN = frozenset((*_OWN, *OPTIONS))
"""The names of all options of a session."""
_ONNXRUNTIMES = frozenset({"disabled_optimizers", "enable_fallback", "read_config_from_model"})
"""The keywords that onnxruntime's class reads."""
_looked_for_slips = threading.Event()


@dataclass(frozen=True)
class Settings:
    """The options of a session.

    Attributes:
        enable: True to optimise the model, False to run the original, None if no entry decides that.
        why_not: if the model is not optimised, the reason in words.
        strict: True to raise an error if the model cannot be optimised, instead of running the original.
        plans: True to run loops as compiled code, unless the option ``native`` decides otherwise.
        cache: True to store optimised models on disk.
        cache_dir: the folder of the cache.
        cache_size: the maximum size of the cache in bytes.
        options: the options of ``optimize``.
    """

    enable: bool | None = None
    why_not: str = "ortscan.enable is 0"
    strict: bool = False
    plans: bool = False
    cache: bool = True
    cache_dir: str | None = None
    cache_size: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(options: "ort.SessionOptions | None", defaults: Mapping[str, str] | None = None) -> Settings:
    """Read the entries ``ortscan.*`` of ``options``, and return them as Settings.

    Args:
        options: the SessionOptions.
        defaults: the texts to read for options without an entry, by the names of the options.

    Raises:
        OptionError: the text of an option is invalid.
    """
    entries = {name: entry_of(options, PREFIX + name) for name in (*_OWN, *OPTIONS)}
    texts = {**(defaults or {}), **{name: text for name, text in entries.items() if text is not None}}
    values = {name: _read(name, text) for name, text in texts.items()}
    return Settings(
        **{name: value for name, value in values.items() if name in _OWN},
        options={name: value for name, value in values.items() if name in OPTIONS},
    )


def entry_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as the texts that entries of SessionOptions would have.

    For example, True becomes "1". Raise OptionError for an unknown option or an invalid value.
    """
    texts = {}
    for name, value in options.items():
        if name not in OPTIONS and name not in _OWN:
            known = [*_OWN, *OPTIONS]
            raise OptionError(f"there is no session option '{name}'; there are {', '.join(known)}{did_you_mean(name, known)}.")
        try:
            texts[name] = json.dumps(dict(value), default=_as_list) if name == "fix_inputs" else _spell(value)
        except Exception:  # the caller's code may run here and raise anything
            raise OptionError(f"the session option {PREFIX}{name} cannot be {shown(value)}.") from None
        _read(name, texts[name])
    return texts


def pop_options(keywords: dict[str, Any]) -> dict[str, str]:
    """Remove the session options from ``keywords``, and return them as texts.

    Raise OptionError for an invalid value, and for a keyword that resembles an option and is none of onnxruntime's.
    """
    slips = [name for name in keywords if name not in KNOWN and name not in _ONNXRUNTIMES and near_names(name, KNOWN)]
    options = {name: keywords.pop(name) for name in [*slips, *(KNOWN & keywords.keys())]}
    return entry_texts(options)


def _as_list(value: Any) -> Any:
    """Convert a numpy array to a list, or a numpy number to a Python number, so that json can write it."""
    return value.tolist()


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Mapping):
        return ";".join(_spell_sizes(name, sizes) for name, sizes in value.items())
    return ",".join(map(str, value)) if isinstance(value, list | tuple | set | frozenset) else str(value)


def _spell_sizes(name: str, sizes: Any) -> str:
    if not isinstance(sizes, Iterable):
        return f"{name}={sizes}"
    return f"{name}:{','.join('?' if size is None else str(size) for size in sizes)}"


def _read(name: str, text: str) -> Any:
    reader = _OWN.get(name) or OPTIONS[name]
    try:
        return reader(text)
    except (ValueError, argparse.ArgumentTypeError) as error:
        why = str(error).replace(f"'{text}' is", "it is", 1)
        raise OptionError(f"the session option {PREFIX}{name} cannot be '{text}': {why}.") from None


def warn_of_mistyped(options: "ort.SessionOptions | None", *, once: bool) -> None:
    """Issue a warning about each entry whose name is probably a misspelled option.

    SessionOptions cannot list their entries, so this function looks up common misspellings of each option. This takes about 20 ms.
    Therefore, if ``once`` is True, it does nothing after the first call in this process.
    """
    if options is None or (once and _looked_for_slips.is_set()):
        return
    _looked_for_slips.set()
    for name in sorted(KNOWN):
        for slip in sorted(set(_misspellings(name)) - KNOWN):
            if entry_of(options, PREFIX + slip) is not None:
                warn(f"the session option {PREFIX}{slip} is unknown; did you mean {PREFIX}{name}?")


def _misspellings(name: str) -> Iterator[str]:
    """Yield common misspellings of ``name``.

    For ``max_unroll``, examples are ``max-unroll``, ``maxunroll``, ``MAX_UNROLL``, ``maxUnroll``, ``max_unrolls``, ``max_unrol``,
    ``maxx_unroll`` and ``mxa_unroll``.
    """
    yield from (name.replace("_", "-"), name.replace("_", ""), name.upper(), name.title().replace("_", ""), name + "s", name + "es")
    first, *others = name.split("_")
    yield first + "".join(other.title() for other in others)
    yield from (name[:at] + name[at + 1 :] for at in range(len(name)))
    yield from (name[:at] + name[at] + name[at:] for at in range(len(name)))
    yield from (name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1))
