"""The register of defects and the modules that work around them name each other, and every defect has a test that shows it."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from rewrites.ops.quirks import QUIRKS, Quirk
from tests.support.quirks import ID, dies, fate_of, model, ones, refuses, run, shown, shows, workarounds


def test_modules_name_known_defects_only_and_each_is_named() -> None:
    assert workarounds().keys() == QUIRKS.keys()


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=list(QUIRKS))
def test_an_entry_says_in_one_sentence_what_is_wrong(quirk: Quirk) -> None:
    assert ID.fullmatch(quirk.id)
    assert re.fullmatch(r"\d+\.\d+(-\d+\.\d+)?", quirk.seen)
    assert re.fullmatch(r"[A-Z][^\n]*\.", quirk.symptom)


def test_every_defect_is_shown_by_a_test_or_there_is_a_reason_why_not() -> None:
    files = Path(__file__).parent.glob("test_quirks_of_*.py")
    tests = set().union(*(shown(importlib.import_module(f"{__package__}.{file.stem}")) for file in files))
    assert tests == {quirk.id for quirk in QUIRKS.values() if not quirk.not_shown}


SOUND = "g (float[2] x) => (float[2] y) { y = Neg (x) }"


def test_a_defect_that_is_gone_is_told_of_with_what_works_round_it() -> None:
    @shows("ORT-RECURRENT-SOFTPLUS")
    def test_of_it() -> bool:
        return False

    with pytest.raises(AssertionError, match=r"ORT-RECURRENT-SOFTPLUS is gone in onnxruntime [\d.]+: .*\.stable_softplus"):
        test_of_it()


def test_what_is_sound_neither_dies_nor_is_refused_nor_hangs() -> None:
    feeds = {"x": ones(2)}
    assert not dies(model(SOUND), feeds)
    assert not refuses(model(SOUND), feeds, "")
    fate = fate_of(run, model(SOUND).SerializeToString(), feeds)
    assert np.array_equal(fate.result, [[-1, -1]])


def test_a_refusal_for_another_reason_is_no_proof() -> None:
    with pytest.raises(Exception, match="Required inputs"):
        refuses(model(SOUND), {}, "another reason")
