"""Entries ``ortscan.*`` of SessionOptions that are nonsense: one sentence, or a session that works."""

import functools

import numpy as np
import onnxruntime as ort

import ortscan
from ortscan.errors import OrtscanError
from ortscan.session.settings import OPTIONS, PREFIX, read_settings
from tests.campaigns.attacks.frame import Box, attack, survived
from tests.support.small_models import MAP, X, expected_of_map
from tests.support.text import parsed

__all__: list[str] = []

NONSENSE = (
    *(
        "",
        " ",
        "\n",
        "-1",
        "-0",
        "+1",
        "1_000",
        "0x10",
        "1.5",
        "1e999",
        "nan",
        "inf",
        "None",
        "true\n",
        "[1]",
        "{}",
        "%s%n",
        "\x7f",
    ),
    *("9" * 40, "9" * 5000, "9" * 5000 + "G", "1KK", "-1K", "x" * 8000, "ä循环", "\u202e", "\u0661", "½", "\u00b2"),
    *(",", ";;", ":", "x:", ":1", "x:a", "x:-1", "x:1,,2", "x:1;x:2", "x:" + "1," * 3000, "x:" + "9" * 30),
    *("../..", "~nobody/x", "all", "no-such-rule", "cpu,cuda", "CPU", "latest", "auto", "0", "400"),
)
ENTRIES = ("enable", "strict", "cache", "cache_size", "cache_dir", *OPTIONS)
MODEL = parsed(MAP).SerializeToString()


def nonsense(name: str, box: Box) -> None:
    """Read every text; open sessions with those that mean something."""
    for text in NONSENSE:
        print(repr(text[:50]), flush=True)
        options = ort.SessionOptions()
        options.add_session_config_entry(PREFIX + name, text)
        if name != "strict":
            options.add_session_config_entry(f"{PREFIX}strict", "1")
        if isinstance(survived(functools.partial(read_settings, options)), OrtscanError):
            continue
        session = survived(functools.partial(ortscan.InferenceSession, MODEL, options))
        if not isinstance(session, OrtscanError):
            np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


for _name in ENTRIES:
    attack(f"ortscan.{_name}", seconds=40)(functools.partial(nonsense, _name))
