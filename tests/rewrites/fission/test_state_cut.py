"""The minimum cut against every cut there is."""

import itertools
import random
from collections.abc import Iterator

import pytest

from rewrites.fission.state_cut import FOREVER, CutGraph

SOURCE, SINK = CutGraph.SOURCE, CutGraph.SINK
Edge = tuple[str, str, int]


def drawn(rng: random.Random) -> list[Edge]:
    """Edges among up to five vertices; few costs, so that many cuts cost the same; some endless, some given twice, some to itself."""
    vertices = [SOURCE, SINK, *"abcde"[: rng.randint(0, 5)]]
    costs = rng.choice([[1], [1, 2, 3], [0, 1, 4], [1, 2, FOREVER], [5, FOREVER]])
    return [(rng.choice(vertices), rng.choice(vertices), rng.choice(costs)) for _ in range(rng.randint(0, 14))]


def sides(edges: list[Edge]) -> Iterator[tuple[int, set[str]]]:
    """The cost of each cut, and the vertices on the source's side."""
    inner = sorted({end for edge in edges for end in edge[:2]} - {SOURCE, SINK})
    for chosen in itertools.product([False, True], repeat=len(inner)):
        side = {SOURCE, *itertools.compress(inner, chosen)}
        yield sum(cost for start, end, cost in edges if start in side and end not in side), side


def graph_of(edges: list[Edge]) -> CutGraph:
    graph = CutGraph()
    for start, end, cost in edges:
        graph.edge(start, end, cost)
    return graph


def test_no_cut_costs_less_and_none_as_cheap_keeps_fewer_vertices() -> None:
    endless = 0
    for seed in range(1500):
        edges = drawn(random.Random(seed))
        cuts = list(sides(edges))
        least = min(cost for cost, _ in cuts)
        found = graph_of(edges).minimum_cut(1000)
        if least >= FOREVER:
            endless += 1
            assert found is None
        else:
            cheapest = [side for cost, side in cuts if cost == least]
            assert found in cheapest
            assert all(found <= side for side in cheapest)
    assert endless > 50


def test_a_cut_that_takes_more_paths_than_allowed_is_none() -> None:
    edges = [(SOURCE, name, 1) for name in "abc"] + [(name, SINK, 2) for name in "abc"]
    assert graph_of(edges).minimum_cut(3) is None
    assert graph_of(edges).minimum_cut(4) == {SOURCE}


def test_flow_goes_back_where_the_first_path_took_the_wrong_way() -> None:
    short = [(SOURCE, "a", 1), ("a", "c", 1), ("c", SINK, 1)]
    assert graph_of([*short, (SOURCE, "b", 1), ("b", "c", 1), ("a", "d", 1), ("d", "e", 1), ("e", SINK, 1)]).minimum_cut(9) == {
        SOURCE
    }


@pytest.mark.parametrize("edges", [[], [("a", "b", 1)], [("a", SOURCE, 3), (SINK, "a", 3)]])
def test_without_a_way_to_the_sink_what_the_source_reaches_stays(edges: list[Edge]) -> None:
    assert graph_of(edges).minimum_cut(1) == {SOURCE}
