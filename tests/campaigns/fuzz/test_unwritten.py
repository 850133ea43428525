"""What nothing wrote is told from what is wrong."""

import numpy as np

from tests.campaigns.fuzz.trust import session_of
from tests.campaigns.fuzz.unwritten import unwritten_outputs
from tests.support.runtime import run_session
from tests.support.text import model_from_text


def test_the_cell_of_an_lstm_without_steps_is_unwritten_and_nothing_else_is():
    data = model_from_text(
        """<ir_version: 8, opset_import: ["": 16]>
        g (float[T,B,3] x, float[1,8,3] w, float[1,8,2] r) => (float[1,B,2] h, float[1,B,2] c, float[T,B,3] z) {
            y, h, c = LSTM <hidden_size = 2> (x, w, r) z = Neg (x) }"""
    ).SerializeToString()
    rng = np.random.default_rng(0)
    for steps, expected in ((0, {1}), (2, set())):
        shapes = {"x": (steps, 2, 3), "w": (1, 8, 3), "r": (1, 8, 2)}
        feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        session = session_of(data)
        assert unwritten_outputs(data, session, feeds, run_session(session, feeds), 0.0) == expected
