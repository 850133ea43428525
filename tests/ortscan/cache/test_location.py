import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.cache.location import cache_folder
from ortscan.errors import OptionError, OrtscanWarning
from tests.support.small_models import MAP, X, expected_of_map
from tests.support.text import parsed


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Remove all variables that set the folder."""
    for name in ("ORTSCAN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return monkeypatch


def test_folder_is_the_argument_or_the_variable_or_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert cache_folder("/a") == Path("/a").absolute()
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("ORTSCAN_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ortscan"


def no_such_user(_: int) -> None:
    raise KeyError("getpwuid(): uid not found")


def test_user_without_home_gets_uncached_models(bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    bare.setattr("pwd.getpwuid", no_such_user)
    assert cache_folder() is None
    for options in (None, strict()):
        session = ortscan.InferenceSession(parsed(MAP), options)
        assert (session.ortscan.source, session.ortscan.entry) == ("optimized", None)
        assert str(session.ortscan.why).startswith("the model was not cached: this user has no cache folder")
        np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)
    assert main(["cache", "info"]) == 2
    assert "name one with --dir or ORTSCAN_CACHE_DIR" in capsys.readouterr().err


def strict(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for name, text in {"strict": "1", **entries}.items():
        options.add_session_config_entry(f"ortscan.{name}", text)
    return options


def test_empty_and_relative_variables_are_ignored(bare: pytest.MonkeyPatch, tmp_path: Path):
    bare.setenv("HOME", str(tmp_path))
    for named in ("", "caches", "./x"):
        bare.setenv("XDG_CACHE_HOME", named)
        assert cache_folder() == tmp_path / ".cache" / "ortscan"
    bare.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_dir="/of/the/user"))
    for named in ("", "somewhere"):
        bare.setenv("HOME", named)
        assert cache_folder() == Path("/of/the/user/.cache/ortscan")
    bare.setenv("ORTSCAN_CACHE_DIR", "")
    bare.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "ortscan"


@pytest.mark.parametrize("named", ["", "a\0b", "\0", "~no-such-user-here/x", "\ud800"])
def test_invalid_path_is_an_option_error(named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(OptionError, match="cannot be"):
        cache_folder(named)
    with pytest.raises(OptionError, match=r"the session option ortscan\.cache_dir cannot be"), ortscan.patched(cache_dir=named):
        pass
    assert main(["cache", "clear", "--dir", named]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_path_with_a_null_character_is_refused():
    with pytest.raises(OptionError, match=r"ortscan\.cache_dir cannot be ''"):
        ortscan.InferenceSession(parsed(MAP), strict(cache_dir="\0"))


def test_error_names_the_environment_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", "~no-such-user-here")
    with pytest.raises(OptionError, match="ORTSCAN_CACHE_DIR cannot be '~no-such-user-here'"):
        ortscan.InferenceSession(parsed(MAP))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
def test_unwritable_cache_still_runs_the_model(error: OSError, cache: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("ortscan.cache.store.write_own", refuse)
    for _ in range(2):
        session = ortscan.InferenceSession(parsed(MAP), strict())
        assert session.ortscan.source == "optimized"
        assert session.ortscan.why == f"the model was not cached in {cache}: {error.strerror}"
    assert not list(cache.joinpath("models").iterdir())


@pytest.mark.skipif(os.name == "nt", reason="folders have no modes there")
@pytest.mark.parametrize(("parts", "mode"), [("volume", 0o777), ("volume/cache", 0o777), ("volume/a/b", 0o776)])
def test_cache_writable_by_others_warns_once(parts: str, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / parts
    folder.mkdir(parents=True)
    (tmp_path / "volume").chmod(mode)
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", str(folder / "models"))
    with pytest.warns(OrtscanWarning, match=r"nothing is cached in .*/volume'.*ORTSCAN_CACHE_DIR.*ortscan\.cache to 0") as warned:
        ortscan.InferenceSession(parsed(MAP))
    assert [warning.filename for warning in warned] == [__file__]
    assert ortscan.InferenceSession(parsed(MAP), strict()).ortscan.source == "optimized"
    ortscan.InferenceSession(parsed(MAP), strict(cache="0", cache_dir=str(folder / "others")))


def test_read_only_cache_still_serves(cache: Path, monkeypatch: pytest.MonkeyPatch):
    ortscan.InferenceSession(parsed(MAP))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    for name in ("os.utime", "os.rename", "os.replace"):
        monkeypatch.setattr(name, refuse)
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "cached"
    monkeypatch.undo()


def test_command_line_leaves_foreign_files_alone(cache: Path, capsys: pytest.CaptureFixture[str]):
    theirs = [
        cache / "models" / "mine.onnx",
        cache / "models" / "resnet" / "model.onnx",
        cache / "files" / "notes.txt",
        cache / "a",
    ]
    for file in theirs:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(1000))
    (cache / "models" / ("f" * 64)).symlink_to(cache / "models" / "resnet")
    ortscan.InferenceSession(parsed(MAP), strict(cache_size="1"))
    ortscan.InferenceSession(parsed(MAP), strict())
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 optimised model, ")
    assert all(file.stat().st_size == 1000 for file in theirs)
    assert sorted(file.name for file in cache.joinpath("models").iterdir() if not file.is_symlink()) == ["mine.onnx", "resnet"]


def test_clear_keeps_unfinished_entries(cache: Path, capsys: pytest.CaptureFixture[str]):
    unfinished = cache / "models" / "tmp-1-0123456789ab"
    unfinished.mkdir(parents=True)
    assert main(["cache", "clear"]) == 0
    assert unfinished.exists()
    os.utime(unfinished, (1, 1))
    assert main(["cache", "clear"]) == 0
    assert not unfinished.exists()


@pytest.mark.parametrize("action", ["info", "clear"])
def test_damaged_cache_is_reported_in_one_line(action: str, cache: Path, capsys: pytest.CaptureFixture[str]):
    ortscan.InferenceSession(parsed(MAP))
    for file in cache.rglob("*.*"):
        file.write_bytes(b"\xff")
    assert main(["cache", action]) == 0
    assert main(["cache", action, "--dir", str(cache / "nothing-there")]) == 0
    cache.joinpath("file").mkdir()
    cache.joinpath("file", "models").write_text("")
    capsys.readouterr()
    assert main(["cache", action, "--dir", str(cache / "file")]) == 1
    assert capsys.readouterr().err == f"ortscan: error: {cache / 'file' / 'models'}: Not a directory\n"
