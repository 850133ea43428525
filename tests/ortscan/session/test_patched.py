import abc
import sys
import threading
import types

import numpy as np
import onnxruntime
import onnxruntime as ort
import pytest

import ortscan
from ortscan.errors import OptionError
from tests.support.small_models import MAP, X, expected_of_map
from tests.support.text import parsed

ORIGINAL = onnxruntime.InferenceSession


def test_code_one_does_not_own_makes_sessions_of_ortscan():
    stranger = types.ModuleType("stranger")
    exec("from onnxruntime import InferenceSession\ndef make(model): return InferenceSession(model)", stranger.__dict__)
    sys.modules["stranger"] = stranger
    try:
        with ortscan.patched(target="onnx", cache=False):
            session = stranger.make(parsed(MAP).SerializeToString())
            assert isinstance(session, ort.InferenceSession)
        assert stranger.InferenceSession is ORIGINAL
    finally:
        del sys.modules["stranger"]
    assert (session.ortscan.source, session.ortscan.target, session.ortscan.entry) == ("optimized", "onnx", None)
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_blocks_nest_and_end_even_where_they_fail():
    with ortscan.patched(target="cuda") as outer:
        with pytest.raises(Exception, match="INVALID_PROTOBUF"), ortscan.patched(target="onnx"):
            ort.InferenceSession(b"no model")
        assert ort.InferenceSession is outer
    assert ort.InferenceSession is ORIGINAL


def test_blocks_that_overlap_leave_nothing_behind():
    one, two = ortscan.patched(), ortscan.patched()
    one.__enter__()
    second = two.__enter__()
    one.__exit__(None, None, None)
    assert ort.InferenceSession is second
    two.__exit__(None, None, None)
    assert ort.InferenceSession is ORIGINAL


def test_session_options_count_more_than_the_block():
    said = ort.SessionOptions()
    said.add_session_config_entry("ortscan.target", "cuda")
    with ortscan.patched(target="onnx"):
        assert ort.InferenceSession(parsed(MAP).SerializeToString(), said).ortscan.target == "cuda"


def test_an_option_there_is_not_is_refused_at_once():
    with pytest.raises(OptionError, match="there is no session option 'targte'"), ortscan.patched(targte="cpu"):
        pass
    with pytest.raises(OptionError, match=r"ortscan\.max_unroll cannot be 'many'"), ortscan.patched(max_unroll="many"):
        pass


def test_what_ortscan_itself_runs_stays_plain():
    with ortscan.patched():
        assert ortscan.verify(parsed(MAP), parsed(MAP)).ok
        assert ortscan.optimize(parsed(MAP)).graph.node[0].op_type != "Scan"


def test_sessions_and_classes_made_before_are_still_those_of_onnxruntime():
    before = ORIGINAL(parsed(MAP).SerializeToString())

    class Base(ORIGINAL):
        pass

    with ortscan.patched(cache=False), ortscan.patched(cache=False):
        assert isinstance(before, ort.InferenceSession)
        assert issubclass(Base, ort.InferenceSession)
        assert not isinstance(3, ort.InferenceSession)

        class Mine(ort.InferenceSession, abc.ABC):
            pass

        mine = Mine(parsed(MAP).SerializeToString())
        assert mine.ortscan.source == "optimized"
        assert isinstance(mine, Mine)
        assert isinstance(mine, ort.InferenceSession)
        assert not isinstance(before, Mine)
        assert not issubclass(Base, Mine)
    assert isinstance(mine, ort.InferenceSession)


def test_blocks_of_threads_that_overlap_end_with_the_class_that_was_there():
    before = onnxruntime.InferenceSession
    problems: list[BaseException] = []

    def enter_and_leave() -> None:
        try:
            for _ in range(20):
                with ortscan.patched(cache=False) as made:
                    assert issubclass(made, before)
                    assert onnxruntime.InferenceSession is not before
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=enter_and_leave) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert onnxruntime.InferenceSession is before


def test_blocks_may_end_in_another_order_than_they_began():
    before = onnxruntime.InferenceSession
    blocks = [ortscan.patched(cache=False) for _ in range(4)]
    made = [block.__enter__() for block in blocks]
    for left in (1, 3, 0):
        blocks[left].__exit__(None, None, None)
        made[left] = None
        assert onnxruntime.InferenceSession is [each for each in made if each is not None][-1]
    blocks[2].__exit__(None, None, None)
    assert onnxruntime.InferenceSession is before
