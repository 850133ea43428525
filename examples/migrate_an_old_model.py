"""Migrate a TensorFlow 1 model to opset 18.

onnxruntime runs the opset-8 ``Scan`` of the old model separately for each row of the batch.

python examples/migrate_an_old_model.py
"""

from pathlib import Path

import onnx

import ortscan

MODEL = Path(__file__).with_name("tensorflow_lstm_opset_8.onnx")


def main() -> None:
    """Migrate the model, then optimise the result, and time all three models.

    The migrated model still has its loop. The optimised model has no loop.
    """
    migrated = ortscan.migrate(MODEL, 18)
    optimized = ortscan.optimize(migrated)
    for name, model in (("before", onnx.load(MODEL)), ("migrated", migrated), ("optimized", optimized)):
        print(f"{name}: opset {model.opset_import[0].version}, loops: {len(ortscan.explain(model).loops)}")
    (result,) = ortscan.bench(MODEL, migrated, optimized, shapes={"x:0": [8, 64, 5]}, rounds=6, seconds=1).results
    print(f"times as fast: migrated {result.ratio(1).value:.1f}, optimized {result.ratio(2).value:.1f}")


if __name__ == "__main__":
    main()
