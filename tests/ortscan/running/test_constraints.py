"""Constraints that operators impose on the sizes of inputs."""

from ortscan.running.constraints import SizeFacts


def test_what_is_learned_of_sizes_is_joined():
    sizes = SizeFacts()
    sizes.add_equal("a", "b")
    sizes.add_equal("b", 5)
    sizes.add_equal("a", 7)
    sizes.add_broadcast("c", "a")
    sizes.add_broadcast("d", 1)
    assert sizes.groups(["a", "b", "c", "d"]) == [[["a", "b"], ["c"]], [["d"]]]
    assert (sizes.required_size("a"), sizes.required_size("c"), sizes.required_size("d")) == (5, None, None)
    assert sizes.likely_size("c") == 5


def test_sizes_are_allowed_that_are_as_was_learned():
    sizes = SizeFacts()
    sizes.add_equal("a", "b")
    sizes.add_broadcast("b", "c")
    sizes.add_equal("d", 5)
    sizes.add_broadcast("e", 7)
    assert sizes.allow({"a": 2, "b": 2, "c": 2, "d": 5, "e": 7, "f": 9})
    assert sizes.allow({"a": 2, "b": 2, "c": 1, "d": 5, "e": 1})
    for wrong in ({"a": 2, "b": 1}, {"a": 2, "c": 3}, {"a": 0, "c": 2}, {"d": 1}, {"e": 5}):
        assert not sizes.allow(wrong)
