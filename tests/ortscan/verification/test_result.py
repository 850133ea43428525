"""The summary of a verification is written for readers who do not know onnxruntime's source."""

import pytest

from ortscan.verification.result import Case, Verification


@pytest.mark.parametrize(("name", "node"), [("m", " 'm'"), ("", "")])
def test_a_skipped_case_names_the_node_that_failed(name: str, node: str) -> None:
    reason = f"the original fails: running Mul node. Name:'{name}' Status Message: the sizes differ"
    summary = Verification(True, [Case({}, {}, "skipped", reason)], []).summary()
    assert f"1 case skipped (the original fails: running Mul node{node}: the sizes differ)" in summary


def test_only_the_innermost_node_that_failed_is_named() -> None:
    inner = "Non-zero status code returned while running Mul node. Name:'m' Status Message: the sizes differ"
    reason = f"the original fails: running Scan node. Name:'s' Status Message: {inner}"
    assert (
        "(the original fails: running Mul node 'm': the sizes differ)"
        in Verification(True, [Case({}, {}, "skipped", reason)], []).summary()
    )
