"""What is kept of published models, and how a result is judged."""

import numpy as np
import onnx
import pytest

from tests.campaigns.published import record
from tests.campaigns.published.__main__ import WITHOUT_LOOPS, counted, way
from tests.campaigns.published.packages import MODELS, Published, made_inputs
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

DOUBLED = model_from_text("g (float[B, 2] x, int64 sr) => (float[B, 2] y) { s = CastLike (sr, x) y = Mul (x, s) }", 18)
ASKED = Published("none==0", "doubled.onnx", {"x": ("B", 2)}, ({"B": 3}, {"B": 1}), values={"sr": 2})


def judged(made: onnx.ModelProto) -> str:
    inputs = [made_inputs(ASKED, DOUBLED, sizes) for sizes in ASKED.sizes]
    return way(lambda: made, inputs, [ort_run(DOUBLED, feeds) for feeds in inputs], "optimize")["became"]


def test_a_result_is_equal_at_all_sizes_or_differs():
    assert judged(DOUBLED) == "equal"
    wrong = model_from_text("g (float[B, 2] x, int64 sr) => (float[B, 2] y) { y = Add (x, x) }", 18)
    assert judged(wrong) == "equal"
    text = "g (float[B, 2] x, int64 sr) => (float[B, 2] y) { s = CastLike (sr, x) z = Mul (x, s) o = Constant <value = float {0.01}> () y = Add (z, o) }"
    assert judged(model_from_text(text, 18)).startswith("differs by")
    narrow = "g (float[3, 2] x, int64 sr) => (float[3, 2] y) { y = Add (x, x) }"
    assert judged(model_from_text(narrow, 18)).startswith("fails")


def test_inputs_have_their_sizes_and_given_values():
    made = made_inputs(ASKED, DOUBLED, {"B": 3})
    assert (made["x"].shape, made["x"].dtype, made["sr"].item()) == ((3, 2), np.float32, 2)


@pytest.mark.parametrize("seen", record.kept(), ids=lambda seen: seen["name"])
def test_every_result_kept_of_a_published_model_was_equal_or_refused_with_a_reason(seen):
    others = {name: one["became"] for name, one in seen["ways"].items() if one["became"] != "equal"}
    assert {name: became for name, became in others.items() if not became.startswith("refused: ")} == {}
    assert set(seen["ways"]) >= {"optimize", "migrate 21", "session", *WITHOUT_LOOPS, *(f"{name}, fixed" for name in WITHOUT_LOOPS)}


@pytest.mark.parametrize("seen", record.kept(), ids=lambda seen: seen["name"])
def test_the_document_names_whatever_a_target_lacks_though_all_sizes_are_known(seen):
    kept = [name for name, one in seen["ways"].items() if "fixed" in name and one.get("lacking")]
    assert [line.split(" keeps ")[0] for line in record.faults(seen) if " keeps " in line] == kept
    assert all(record.as_exception(seen["name"], line) + "\n" in record.as_document() for line in record.faults(seen))


def test_models_of_at_least_eight_packages_are_asked_for():
    assert len({model.package for model in MODELS}) >= 8
    assert len({model.name for model in MODELS}) == len(MODELS)


def test_loops_and_recurrent_nodes_are_counted_in_bodies_too():
    text = "g (float[2] x, bool c) => (float[2] y) { y = If <then_branch = t () => (float[2] p) { p = If <then_branch = u () => (float[2] q) { q = Neg (x) }, else_branch = v () => (float[2] r) { r = Abs (x) }> (c) }, else_branch = e () => (float[2] w) { w = Exp (x) }> (c) }"
    assert counted(model_from_text(text, 18)) == {"If": 2}
