"""Pictures of egs/zerospeech: what is drawn, from made-up scores, units and samples."""

import hashlib
import math

import numpy as np
import pytest
from matplotlib.image import imread

from pyspeech.features.config import StftConfig
from steps.units import figures


def entry(across, bitrate, codes=128, within=None):
    return {
        "seed": 1,
        "codes": codes,
        "abx": {"across": across, "within": across - 3 if within is None else within},
        "bitrate": bitrate,
        "used": codes,
    }


SCORES = {
    "trf128": [entry(20.0, 170.0), entry(22.0, 172.0)],
    "trf64": [entry(24.0, 140.0, 64)],
    "trf128_logmel": [entry(33.0, 171.0)],
    "trf128_smooth_1e-3": [entry(21.0, 169.0)],
    "conv256": [entry(25.0, 180.0, 256)],
    "kmeans64": [entry(26.0, 141.0, 64)],
    "kmeans128": [entry(25.0, 172.0)],
    "mfcc": [{"abx": {"within": 8.0, "across": 15.0}, "bitrate": None, "used": None}],
}


def test_points_of_the_trade_off():
    points = figures.trade_off_points(SCORES, "across")
    assert list(points) == list(figures.FAMILIES)
    assert points[figures.SIZES] == [(64, 140.0, 24.0, None), (128, 171.0, 21.0, pytest.approx(math.sqrt(2)))]
    assert points["k-means, K"] == [(64, 141.0, 26.0, None), (128, 172.0, 25.0, None)]
    assert points["regularised"] == [(128, 169.0, 21.0, None)] and points["log-Mel"][0][2] == 33.0
    assert figures.trade_off_points(SCORES, "within")["Conv VQVAE, K"] == [(256, 180.0, 22.0, None)]
    assert figures.trade_off_points({"trf128": [{**entry(1, 2), "abx": None}]}, "across") == {}


def test_the_paper_is_drawn_where_it_is_near():
    near = figures.paper_points({"x": [(128, 170.0, 21.0, None)]})
    assert (170.42, 21.91) in near and (171.05, 33.79) not in near and len(near) == 12
    assert (171.05, 33.79) in figures.paper_points(figures.trade_off_points(SCORES, "across"))
    assert figures.paper_points({"x": [(128, 170.0, 45.0, None)]}) == [] == figures.paper_points({})


def test_shares_of_the_codes(tmp_path):
    codebook = np.eye(3, dtype=np.float32)
    np.save(tmp_path / "a.npy", codebook[[0, 1, 0]])
    np.save(tmp_path / "b ä.npy", codebook[[0]])
    np.save(tmp_path / "c.npy", codebook[[]])
    assert figures.code_shares(tmp_path) == [0.75, 0.25]


def test_runs_of_codes():
    assert figures.runs_of([5, 5, 2, 5], [0, 1, 2, 3], [1, 2, 3, 3.5]) == [(5, 0, 2), (2, 2, 3), (5, 3, 3.5)]
    assert figures.runs_of([7], [0], [1]) == [(7, 0, 1)]


def test_pictures_are_drawn_and_the_same_each_time(tmp_path):
    config = StftConfig(16000, 1024, 400, 160)
    tone = np.sin(np.arange(8000) * 0.3).astype(np.float32)
    digests = set()
    for folder in (tmp_path / "1", tmp_path / "2"):
        assert figures.plot_trade_off(SCORES, folder / "trade_off.png")
        figures.plot_code_usage({"trf128": [0.5, 0.3, 0.2], "one": [1.0]}, folder / "usage.png")
        figures.plot_sentence(
            "a sentence, ä",
            tone,
            [(7, 0.0, 0.3), (127, 0.3, 0.5)],
            {"V001": tone, "V002": np.zeros(8000, np.float32)},
            config,
            folder / "sentence.png",
        )
        paths = sorted(folder.glob("*.png"))
        assert len(paths) == 3 and all(imread(path)[..., :3].std() > 0.05 for path in paths)
        digests.add(tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths))
    assert len(digests) == 1


def test_without_abx_of_one_mode(tmp_path):
    one_speaker = {
        name: [{**one, "abx": {**one["abx"], "across": None}} for one in entries] for name, entries in SCORES.items()
    }
    assert figures.plot_trade_off(one_speaker, tmp_path / "x.png") and imread(tmp_path / "x.png").size
    assert figures.trade_off_points(one_speaker, "across") == {}
    nothing = {name: [{**one, "abx": {"across": None, "within": None}} for one in entries] for name, entries in SCORES.items()}
    assert not figures.plot_trade_off(nothing, tmp_path / "y.png")


def test_nothing_to_draw(tmp_path):
    assert not figures.plot_trade_off({"mfcc": SCORES["mfcc"]}, tmp_path / "x.png") and not list(tmp_path.iterdir())


def test_shortest_utterance(tmp_path):
    figures.plot_sentence(
        "x",
        np.zeros(1, np.float32),
        [(0, 0.0, 1 / 16000)],
        {"V": np.zeros(1, np.float32)},
        StftConfig(16000, 1024, 400, 160),
        tmp_path / "x.png",
    )
    assert imread(tmp_path / "x.png").size
