"""Run a speech model on one frame of 10 ms at a time.

The state of the model stays in buffers that are bound to the session, from one frame to the next.

The model is exported for any number of frames, with a loop over them. With ``ortscan.fix_dims`` set to one frame, the session
contains only the body of one step, without a loop. IO binding keeps the state in its buffers, so no frame copies the state.

    python examples/streaming.py
"""

import timeit
from functools import partial

import numpy as np
import onnx
import onnxruntime

import ortscan

SAMPLES, FEATURES, UNITS = 160, 40, 64
TEXT = """<ir_version: 9, opset_import: ["": 18]>
speech (float[frames,1,160] audio, float[1,64] state) => (float[frames,1,1] voice, float[1,64] last) {
    last, voice = Scan <num_scan_inputs = 1, body = frame (float[1,64] h, float[1,160] x) => (float[1,64] h1, float[1,1] y) {
        f = MatMul (x, filters) p = Mul (f, f) e = Add (p, floor) m = Log (e)
        a = MatMul (m, W) az, ar, an = Split <axis = 1, num_outputs = 3> (a)
        b = MatMul (h, R) bz, br, bn = Split <axis = 1, num_outputs = 3> (b)
        sz = Add (az, bz) z = Sigmoid (sz) sr = Add (ar, br) r = Sigmoid (sr) rn = Mul (r, bn) sn = Add (an, rn) n = Tanh (sn)
        d = Sub (h, n) zd = Mul (z, d) h1 = Add (n, zd) o = MatMul (h1, V) y = Sigmoid (o)
    }> (state, audio)
}"""


def main() -> None:
    """Stream a second of sound, and compare the results with a run on all frames at once."""
    model = speech_model()
    audio = np.random.default_rng(1).normal(0, 0.1, (100, 1, SAMPLES)).astype(np.float32)
    plain = onnxruntime.InferenceSession(model.SerializeToString(), one_thread())
    whole, state = plain.run(None, {"audio": audio, "state": np.zeros((1, UNITS), np.float32)})

    options = one_thread()
    options.add_session_config_entry("ortscan.fix_dims", "frames=1")
    session = ortscan.InferenceSession(model, options)
    print(f"the step alone: {session.ortscan.report.loops[0].fate} the loop, {session.ortscan.source}")
    stream = Stream(session)
    heard = np.array([stream.hear(frame) for frame in audio])
    print(f"100 frames of 10 ms: from {heard.min():.2f} to {heard.max():.2f}", end=", ")
    print(f"largest difference {abs(heard - whole.ravel()).max():.1g}, of the state {abs(stream.state() - state).max():.1g}")

    for name, runner in (("onnxruntime", plain), ("ortscan", session)):
        hear = partial(Stream(runner).hear, audio[0])
        seconds = min(timeit.repeat(hear, number=50, repeat=20)) / 50
        print(f"{name}: {seconds * 1e6:.0f} µs a frame")


class Stream:
    """A session that gets one frame after the other.

    Two buffers hold the state. Each frame reads the state from one buffer, and writes the new state to the other.
    """

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        """Bind all inputs and outputs twice: each state buffer is the input in one binding and the output in the other."""
        self._session, self._turn = session, 0
        self._frame = value(1, 1, SAMPLES)
        self._voice = value(1, 1, 1)
        self._states = value(1, UNITS), value(1, UNITS)
        self._bindings = [self._bound(turn) for turn in (0, 1)]

    def hear(self, frame: np.ndarray) -> float:
        """Return the probability of speech in ``frame``."""
        self._frame.update_inplace(frame.reshape(1, 1, SAMPLES))
        self._session.run_with_iobinding(self._bindings[self._turn])
        self._turn = 1 - self._turn
        return float(self._voice.numpy().item())

    def state(self) -> np.ndarray:
        """Return the state after all frames so far."""
        return np.asarray(self._states[self._turn].numpy())

    def _bound(self, turn: int) -> onnxruntime.IOBinding:
        binding = self._session.io_binding()
        binding.bind_ortvalue_input("audio", self._frame)
        binding.bind_ortvalue_input("state", self._states[turn])
        binding.bind_ortvalue_output("voice", self._voice)
        binding.bind_ortvalue_output("last", self._states[1 - turn])
        return binding


def value(*shape: int) -> onnxruntime.OrtValue:
    """Return a tensor of zeros that onnxruntime owns."""
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))


def speech_model() -> onnx.ModelProto:
    """Return a model that computes the probability of speech in each frame.

    It applies a filter bank to the frame, a GRU to the logarithms of the energies, and a sigmoid layer to the GRU's state.
    """
    model, rng = onnx.parser.parse_model(TEXT), np.random.default_rng(0)
    shapes = {"filters": (SAMPLES, FEATURES), "W": (FEATURES, 3 * UNITS), "R": (UNITS, 3 * UNITS), "V": (UNITS, 1)}
    weights = {name: rng.normal(0, 1 / np.sqrt(shape[0]), shape) for name, shape in shapes.items()} | {"floor": np.array(1e-4)}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(weight.astype(np.float32), name) for name, weight in weights.items()
    )
    return model


def one_thread() -> onnxruntime.SessionOptions:
    """Return options for sessions with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return options


if __name__ == "__main__":
    main()
