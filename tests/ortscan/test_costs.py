"""Costs that are measured on a machine and kept in a file decide which form a loop becomes."""

import json

import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.base.costs_file import costs_text, read_costs
from ortscan.errors import OptionError
from rewrites.base.abilities import Costs, cost_names
from tests.support.text import model_from_text

DECAYING = model_from_text(
    """g (float[16] s0, float[200, 16] xs) => (float[200, 16] ys) <float half = {0.5}> {
      s, ys = Scan <num_scan_inputs = 1, body = b (float[16] s1, float[16] x) => (float[16] n, float[16] y)
        { d = Mul (s1, half) n = Add (d, x) y = Identity (n) }> (s0, xs) }""",
    18,
)


def has_loop(model) -> bool:
    return any(node.op_type == "Scan" for node in model.graph.node)


def test_a_machine_is_measured_and_the_file_decides(tmp_path, capsys):
    file = tmp_path / "costs.json"
    assert main(["bench", "--calibrate", str(file), "--seconds", "0.2", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert list(output["costs"]) == list(output["built_in"]) == cost_names()
    assert read_costs(file) == Costs(**output["costs"])
    measured = output["costs"]
    assert 10 < measured["node"] < measured["start"] + 1e6
    assert measured["product"] < measured["logarithm"] < measured["operator"]


def test_what_operators_cost_decides_whether_a_loop_goes(tmp_path):
    dear = tmp_path / "dear.json"
    dear.write_text(costs_text(Costs(operator=1e6), "1.32.0"), encoding="utf-8")
    assert not has_loop(ortscan.optimize(DECAYING, verify=False))
    assert has_loop(ortscan.optimize(DECAYING, costs=dear, verify=False))
    assert has_loop(ortscan.optimize(DECAYING, costs={"operator": 1e6}, verify=False))
    assert not has_loop(ortscan.optimize(DECAYING, costs={"step": 1e5, "operator": 1e5}, verify=False))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("nonsense", "are not valid JSON"),
        ("[" * 60000, "are not valid JSON"),
        ("{}", "was not written by"),
        ('{"ortscan_costs": 2, "ns": {}}', "format 1"),
        ('{"ortscan_costs": 1, "ns": {"nodes": 3}}', "there is no cost 'nodes'.*'node'"),
        ('{"ortscan_costs": 1, "ns": {"node": 0}}', "'node' must be a number"),
        ('{"ortscan_costs": 1, "ns": {"node": NaN}}', "'node' must be a number"),
        ('{"ortscan_costs": 1, "ns": {"node": true}}', "'node' must be a number"),
    ],
)
def test_a_file_that_is_none_is_named(content, message, tmp_path):
    file = tmp_path / "costs.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(OptionError, match=f"costs.*{message}"):
        ortscan.optimize(DECAYING, costs=file)


@pytest.mark.parametrize("costs", [3, {"node": "250"}, {3: 4}, ["node"]])
def test_so_is_what_is_no_file(costs):
    with pytest.raises(OptionError, match="costs"):
        ortscan.optimize(DECAYING, costs=costs)


def test_a_session_keeps_a_model_by_what_the_file_holds(tmp_path):
    file, kept = tmp_path / "costs.json", []
    for operator in (850, 1e6, 1e6, 850):
        file.write_text(costs_text(Costs(operator=operator), "1.32.0"), encoding="utf-8")
        options = ort.SessionOptions()
        for name, text in {"costs": str(file), "native": "0", "cache_dir": str(tmp_path / "cache")}.items():
            options.add_session_config_entry(f"ortscan.{name}", text)
        kept.append(ortscan.InferenceSession(DECAYING.SerializeToString(), options).ortscan.source)
    assert kept == ["optimized", "unchanged", "unchanged", "cached"]


def test_what_is_measured_is_this_machine_and_no_model(capsys, tmp_path):
    assert main(["bench", "model.onnx", "--calibrate", str(tmp_path / "costs.json")]) == 2
    assert main(["bench"]) == 2
    assert not list(tmp_path.iterdir())
