"""The command-line tool that makes units of features in files."""

import numpy as np
import pytest
from tool_harness import one_line_error, run_tool

from pyspeech.commands import kmeans
from pyspeech.units.features_files import open_features
from pyspeech.units.units_files import runs

CENTRES = np.array([[0.0, 0.0], [10, 0], [0, 10]])


@pytest.fixture
def features(tmp_path, rng):
    """Frames about three centres, and {name: which of them}."""
    truth = {name: rng.integers(3, size=40) for name in ("a/x", "b/x", "my y")}
    for name, places in truth.items():
        path = tmp_path / "features" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, (CENTRES[places] + rng.normal(0, 0.3, (40, 2))).astype(np.float32))
    return tmp_path / "features", truth


def test_trained_and_applied(tmp_path, features):
    folder, truth = features
    run = run_tool("kmeans_units", folder, "--clusters", "3", "--save", "c.npy", "-o", "units.txt", cwd=tmp_path)
    assert run.returncode == 0 and run.stderr.endswith("units.txt: 3 utterances, 3 clusters\n"), run.stderr
    centres, units = np.load(tmp_path / "c.npy"), open_features(tmp_path / "units.txt")
    place = np.linalg.norm(centres[:, None] - CENTRES, axis=2).argmin(axis=1)
    assert sorted(place) == [0, 1, 2] and units.names == ["a/x", "b/x", "my y"]
    for name, expected in truth.items():
        assert place[units(name).values[:, 0].astype(int)].tolist() == expected.tolist()
    options = ["--centres", str(tmp_path / "c.npy"), "-o"]
    kmeans.main([str(folder), *options, str(tmp_path / "again.txt")])
    assert (tmp_path / "again.txt").read_text() == (tmp_path / "units.txt").read_text()
    kmeans.main([str(folder), *options, str(tmp_path / "merged.txt"), "--merge"])
    merged = open_features(tmp_path / "merged.txt")
    for name, expected in truth.items():
        assert place[merged(name).values[:, 0].astype(int)].tolist() == runs(expected)[0].tolist()
    kmeans.main([str(folder), *options, str(tmp_path / "half.txt"), "--average", "2"])
    assert len(open_features(tmp_path / "half.txt")("a/x").values) == 20


def test_what_is_wrong(tmp_path, features):
    folder, _ = features
    out = ["-o", str(tmp_path / "out.txt")]
    np.save(tmp_path / "c.npy", np.zeros((2, 3)))
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ([folder], "expected --clusters N, to train on FEATURES, or --centres FILE; one of them"),
        ([folder, "--clusters", "2", "--centres", "c.npy"], "one of them"),
        ([folder, "--centres", tmp_path / "c.npy"], "a/x.npy: vectors of 2 numbers; the centres have 3"),
        ([folder, "--centres", tmp_path / "c.txt"], r"--centres .*c.txt: expected a file that --save wrote"),
        ([folder, "--clusters", "500"], "120 frames for k=500"),
        ([tmp_path / "empty", "--clusters", "2"], "empty: no features files in it"),
    ):
        with one_line_error(message):
            kmeans.main([*map(str, arguments), *out])
    assert not (tmp_path / "out.txt").exists()
