"""The options of a session, read from the entries ``ortscan.*`` of its SessionOptions.

onnxruntime keeps entries it does not know, which makes SessionOptions the one thing that travels unchanged through code that makes
sessions for its callers. An option of ``optimize`` needs one line in ``OPTIONS``, no more.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ortscan.ort.session_entries import entry_of
from rewrites.base.errors import OptionError
from rewrites.base.near_names import did_you_mean
from rewrites.base.plain_text import shown

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["KNOWN", "OPTIONS", "PREFIX", "Settings", "read_settings", "spelled"]

PREFIX = "ortscan."
_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


def _flag(text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise ValueError(f"'{text}' is neither 1 nor 0")
    return text.lower() in _TRUE


def _bytes(text: str) -> int:
    from ortscan.base.option_values import byte_size

    return byte_size(text)


def _costs(text: str) -> dict[str, float]:
    """Return what the file holds, not its path: what is kept of a model is kept for these numbers."""
    from ortscan.base.costs_file import read_costs

    return asdict(read_costs(text))


def _folder(text: str) -> str:
    from ortscan.cache.location import check_folder

    return str(check_folder(text, f"the session option {PREFIX}cache_dir"))


def _names(text: str) -> list[str]:
    from ortscan.base.option_values import name_list

    return name_list(text)


def _shapes(text: str) -> dict[str, tuple[int | None, ...]]:
    from ortscan.base.option_values import shape

    return dict(shape(part) for part in text.split(";") if part.strip())


def _dims(text: str) -> dict[str, int]:
    from ortscan.base.option_values import dim

    return dict(dim(part) for part in text.split(";") if part.strip())


def _values(text: str) -> dict[str, Any]:
    from ortscan.base.option_values import input_value

    if text.startswith("{"):
        values = json.loads(text)
        assert isinstance(values, dict)
        return values
    return dict(input_value(part) for part in text.split(";") if part.strip())


def _frozen(text: str) -> bool | list[str]:
    from ortscan.base.option_values import frozen

    return _flag(text) if text.lower() in _TRUE + _FALSE else frozen(text)


def _opset(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _verification(text: str) -> bool | str:
    return text if text in ("quick", "full") else _flag(text)


OPTIONS: dict[str, Callable[[str], Any]] = {
    "target": str,
    "opset": _opset,
    "shapes": _shapes,
    "dims": _dims,
    "fix_shapes": _shapes,
    "fix_dims": _dims,
    "fix_inputs": _values,
    "freeze": _frozen,
    "max_unroll": int,
    "memory_budget": _bytes,
    "costs": _costs,
    "fast_math": _flag,
    "custom_ops": _flag,
    "native": _flag,
    "passes": _names,
    "skip": _names,
    "verify": _verification,
    "on_difference": str,
}
"""The options of ``optimize`` that a session takes, each with what reads it."""

_OWN: dict[str, Callable[[str], Any]] = {
    "enable": _flag,
    "strict": _flag,
    "cache": _flag,
    "cache_dir": _folder,
    "cache_size": _bytes,
}


KNOWN = frozenset((*_OWN, *OPTIONS))
"""All names that are read."""


@dataclass(frozen=True)
class Settings:
    """What a session was asked for.

    ``enable``: whether to optimise; None where nothing was said. ``why_not``: why not, in words. ``strict``: whether what goes
    wrong is raised instead of the original model being used. ``plans``: whether loops are to run compiled where nothing is said
    of that. ``cache``, ``cache_dir``, ``cache_size``: whether and where optimised models are kept, and how many bytes of them.
    ``options``: those of ``optimize`` that were given.
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
    """Read the entries ``ortscan.*``; ``defaults`` holds the texts of those that are not there. Raises OptionError naming one."""
    texts = {name: entry_of(options, PREFIX + name) for name in (*_OWN, *OPTIONS)}
    given = {name: _read(name, text) for name, text in {**(defaults or {}), **_without_none(texts)}.items()}
    return Settings(
        **{name: value for name, value in given.items() if name in _OWN},
        options={name: value for name, value in given.items() if name in OPTIONS},
    )


def spelled(options: Mapping[str, Any]) -> dict[str, str]:
    """Write options as the texts that entries hold; raises OptionError for one there is not."""
    texts = {}
    for name, value in options.items():
        if name not in OPTIONS and name not in _OWN:
            known = [*_OWN, *OPTIONS]
            raise OptionError(f"there is no session option '{name}'; there are {', '.join(known)}{did_you_mean(name, known)}.")
        try:
            texts[name] = json.dumps(dict(value), default=_as_list) if name == "fix_inputs" else _spell(value)
        except Exception:  # a str or an iterator is anybody's code
            raise OptionError(f"the session option {PREFIX}{name} cannot be {shown(value)}.") from None
        _read(name, texts[name])
    return texts


def _as_list(value: Any) -> Any:
    """Return an array, or a number of numpy's, as json writes it."""
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
        raise OptionError(f"the session option {PREFIX}{name} cannot be '{text}': {error}.") from None


def _without_none(texts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text is not None}
