"""The cache of compiled code: no place for it, a full disk and damaged files cost time, never an answer."""

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

from adalook import _jit

SCRIPT = textwrap.dedent(
    """
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from kernel import double
        print(double(21.0))
    print(len([w for w in caught if "adalook" in str(w.message)]))
    """
)


def run(directory: Path, **variables: str) -> list[str]:
    """Compile a kernel of a package in `directory` in another process; returns what it printed."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(directory), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment | variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def kernel(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "kernel.py").write_text(
        "from adalook._jit import compiled\n@compiled\ndef double(x):\n    return 2 * x\n"
    )
    return package


def test_a_truncated_cache_is_mended(kernel, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(kernel, **cache) == ["42.0", "0"]
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(files) == 2
    for path in files:
        whole = path.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], b"garbage" * 50):
            path.write_bytes(damaged)
            assert run(kernel, **cache) == ["42.0", "0"]
            assert run(kernel, **cache) == ["42.0", "0"]
        assert len(path.read_bytes()) > 100, "mended"


def test_no_place_for_a_cache_is_no_obstacle(kernel, tmp_path):
    """A read-only package and no home, as in a container: numba finds no locator, and says so by an error."""
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator", "TMPDIR": str(tmp_path)}
    assert run(kernel, **nowhere) == ["42.0", "1"]


def test_a_private_directory_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    directory = _jit._private_directory()
    assert directory is not None
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o777)
    assert _jit._private_directory() is None, "others may have put code there"
    directory.rmdir()
    directory.symlink_to(tmp_path)
    assert _jit._private_directory() is None


def test_a_full_disk_is_no_obstacle(monkeypatch, tmp_path):
    def full(self, name, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_data", full)
    monkeypatch.setattr(_jit, "_warned", [])
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    def halve(x):
        return x / 2

    function = _jit.compiled(halve)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert function(42.0) == 21.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(np.float32(42.0)) == 21.0
