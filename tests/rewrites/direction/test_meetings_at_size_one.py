"""Results of two directions that meet after axes of size one are gone, in every way there is."""

import itertools

import pytest

from rewrites.direction import both_directions
from rewrites.graph.context import Options
from tests.rewrites.apply import apply, patches
from tests.rewrites.direction.two_directions import TwoNodes

SIZES = [(1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 2, 1), (2, 1, 3)]
"""Steps, rows, width."""


def joining_concats(name: str, sizes: dict[int, int], at_once: bool) -> tuple[list[str], dict[str, list[int]]]:
    """Nodes that let `f_name` and `b_name` meet without every choice of the axes of size one, along every axis, and what they give."""
    nodes, results = [], {}
    ones = [axis for axis, size in sizes.items() if size == 1]
    for count in range(len(ones) + 1):
        for gone in itertools.combinations(ones, count):
            kept = [axis for axis in sizes if axis not in gone]
            tag = f"{name}{''.join(map(str, gone))}"
            for side in "fb":
                last = f"{side}_{name}"
                steps = [gone] if at_once else [(axis,) for axis in reversed(gone)]
                for i, axes in enumerate(axes for axes in steps if axes):
                    nodes.append(f"{side}a{tag}_{i} = Constant <value_ints = [{', '.join(map(str, axes))}]> ()")
                    nodes.append(f"{side}s{tag}_{i} = Squeeze ({last}, {side}a{tag}_{i})")
                    last = f"{side}s{tag}_{i}"
                turn = list(reversed(range(len(kept))))
                nodes.append(f"{side}t{tag} = Transpose <perm = {turn}> ({last})" if kept else f"{side}t{tag} = Identity ({last})")
                nodes.append(f"{side}u{tag} = Identity ({last})")
            for axis in range(len(kept)):
                for stem, order in (("t", list(reversed(kept))), ("u", kept)):
                    out = f"{stem}{tag}_{axis}"
                    nodes.append(f"{out} = Concat <axis = {axis}> (f{stem}{tag}, b{stem}{tag})")
                    results[out] = [sizes[each] * (2 if i == axis else 1) for i, each in enumerate(order)]
    return nodes, results


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("at_once", [False, True])
def test_results_meet_without_axes_of_size_one(sizes: tuple[int, int, int], at_once: bool) -> None:
    steps, rows, width = sizes
    of_all, given = joining_concats("Y", {0: steps, 1: 1, 2: rows, 3: width}, at_once)
    of_last, more = joining_concats("H", {0: 1, 1: rows, 2: width}, at_once)
    nodes = TwoNodes(kind="RNN", after=" ".join(of_all + of_last), results=given | more, rows=rows, steps=steps, size=width)
    feeds = nodes.feeds(steps=steps, rows=rows)
    _, report = apply(nodes.model(), [both_directions], feeds=feeds, options=Options(bidirectional="always"))
    assert patches(report) == ["both-directions"]
