"""ABX: a made-up case with published-rule figures, frozen scores of another tool, a plain slow version, broken input."""

import functools
import itertools
import math

import numpy as np
import pytest

from pyspeech.errors import UserError
from pyspeech.units import abx
from pyspeech.units.abx_distances import DISTANCES, FrameDistances, pair_distances
from pyspeech.units.items import Item, in_any_context, read_items

TOKENS = {
    "s1": "a p-t 0.3 11.7 23.2 | a p-t 7.1 4.6 29.5 | b p-t 61.3 72.9 83.4 | b p-t 21.8 19.1 33.7 34.9 | a k-t 2.6 1.2 | "
    "b k-t 33.1 38.4 31.9 | c p-t 41.2 47.7 53.9",
    "s2": "a p-t 12.4 31.6 | b p-t 41.2 47.7 53.9 | b p-t 16.5 27.3 | a k-t 22.7 13.3 | b k-t 6.8 52.1 | "
    "a k-t 2.2 44.5 3.6 | c p-t 12.4 31.6",
    "s3": "a p-t 17.9 3.8 | b p-t 28.6 66.1 35.5 | b k-t 25.1 70.7",
}
# Within and across, as fractions; known independently of this implementation.
FIGURES = {
    ("cosine", "zerospeech2020"): (0.500000, 0.458333),
    ("kl", "zerospeech2020"): (0.343750, 0.461806),
    ("levenshtein", "zerospeech2020"): (0.625000, 0.519097),
    ("cosine", "joint"): (0.500000, 0.452546),
}


def made_up():
    """Items, and frames (cos, sin) of the angles at 100 Hz: a file a speaker, a frame of 0 degrees after each token.

    An item starts a quarter of a frame late and ends a quarter of a frame after the centre of that frame of 0 degrees.
    """
    items, features = [], {}
    for speaker, text in TOKENS.items():
        angles = []
        for token in text.split("|"):
            phone, context, *degrees = token.split()
            begin, end = len(angles) + 0.25, len(angles) + len(degrees) + 0.75
            items.append(Item(speaker, begin / 100, end / 100, phone, tuple(context.split("-")), speaker))
            angles += [*map(float, degrees), 0.0]
        features[speaker] = np.stack([np.cos(np.deg2rad(angles)), np.sin(np.deg2rad(angles))], axis=1)
    return items, features


def score_items(items, features, distance="cosine", mode="across", rule="zerospeech2020", frame_rate=None):
    """ABX error in %."""
    frames = abx.load_frames(items, features, frame_rate)
    return abx.error_rate(abx.score_cells(items, frames, distance, mode), rule)


@pytest.mark.parametrize("distance, rule", FIGURES)
def test_made_up_case(distance, rule):
    items, features = made_up()
    for mode, expected in zip(abx.MODES, FIGURES[distance, rule], strict=True):
        error = score_items(items, features, distance, mode, rule, frame_rate=100)
        assert error / 100 == pytest.approx(expected, abs=1e-6), mode


# Items of one frame by ABXpy's example data: phone, speaker, vector; then its scores: speaker, A, B, speaker of X, score.
FROZEN_ITEMS = """
00 1.176909 -1.107059 | 10 -0.357395 -0.318073 | 20 -0.743950 -0.212005 | 01 -0.596548 -0.444010 |
11 -1.909782 0.151986 | 21 -0.970625 -1.375067 | 02 -0.775957 -0.265399 | 12 1.172528 2.983315 |
22 -0.116549 -0.022480 | 00 0.469266 -0.258386 | 10 -0.358381 0.903635 | 20 0.626189 1.218709 |
01 -0.540199 -1.185712 | 11 -0.441108 0.028016 | 21 0.166796 0.754659 | 02 -1.902458 0.853812 |
12 1.562612 -0.631433 | 22 -0.732082 0.701659"""
FROZEN_SCORES = """
0011 0.375 | 0012 0.0 | 0021 0.5 | 0022 0.25 | 0101 1.0 | 0102 0.25 | 0121 0.5 | 0122 0.375 | 0201 0.625 |
0202 0.875 | 0211 0.5 | 0212 0.5 | 1010 1.0 | 1012 0.25 | 1020 0.625 | 1022 0.625 | 1100 0.5 | 1102 0.5 | 1120 0.5 |
1122 0.25 | 1200 0.5 | 1202 0.5 | 1210 0.25 | 1212 0.0 | 2010 0.0 | 2011 1.0 | 2020 0.625 | 2021 0.75 | 2100 0.25 |
2101 0.0 | 2120 0.125 | 2121 0.0 | 2200 0.5 | 2201 0.5 | 2210 0.625 | 2211 0.625"""


def test_frozen_scores_of_abxpy():
    items, features = [], {}
    for number, (name, *vector) in enumerate(line.split() for line in FROZEN_ITEMS.split("|")):
        items.append(Item(f"f{number}", 0.0, 0.0, name[0], ("", ""), name[1]))
        features[f"f{number}"] = (np.array([vector, (0, 0)], dtype=float), np.array([0.0, 0.5]))
    cells = abx.score_cells(items, abx.load_frames(items, features))
    found = {f"{speaker}{a}{b}{x}": score for _, speaker, x, a, b, score in zip(*cells, strict=True)}
    assert found == {name: float(score) for name, score in (line.split() for line in FROZEN_SCORES.split("|"))}


def slow_frame_distance(first, second, distance):
    if distance == "levenshtein":
        return float(tuple(first) != tuple(second))
    if distance == "cosine":
        if not first.any() or not second.any():
            return float(first.any() != second.any())
        if (first == second).all():
            return 0.0
        cosine = np.dot(first, second) / math.sqrt(np.dot(first, first)) / math.sqrt(np.dot(second, second))
        return math.acos(min(1.0, max(-1.0, cosine))) / math.pi
    first, second = (row / row.sum() + 2.0**-52 for row in (first, second))
    first, second = first / first.sum(), second / second.sum()
    return np.sum(first * np.log(first / second) + second * np.log(second / first)) / 2


def slow_distance(x, y, distance):
    """Distance of two items, (n, D) and (m, D), X being rows: the whole cost matrix, then a back-trace along it."""
    local = [[slow_frame_distance(first, second, distance) for second in y] for first in x]
    n, m = len(x), len(y)
    if distance == "levenshtein":
        edits = [[max(i, j) for j in range(m + 1)] for i in range(n + 1)]
        for i, j in itertools.product(range(1, n + 1), range(1, m + 1)):
            edits[i][j] = min(edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + local[i - 1][j - 1])
        return float(edits[n][m])
    cost = {}
    for i, j in itertools.product(range(n), range(m)):
        before = [cost[cell] for cell in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if cell in cost]
        cost[i, j] = local[i][j] + min(before, default=0.0)
    i, j, length = n - 1, m - 1, 1
    while i or j:
        corner, left, up = (cost.get(cell, math.inf) for cell in ((i - 1, j - 1), (i, j - 1), (i - 1, j)))
        if corner <= left and corner <= up:
            i, j = i - 1, j - 1
        elif left <= up:
            j -= 1
        else:
            i -= 1
        length += 1
    return cost[n - 1, m - 1] / length


def slow_error(items, between, mode, rule):
    """ABX error in %, triplet by triplet; between(x, y): distance of items by their numbers."""
    numbers, cells = range(len(items)), {}
    for a, b, x in itertools.product(numbers, numbers, numbers):
        one, two, third = items[a], items[b], items[x]
        if not one.context == two.context == third.context or one.speaker != two.speaker:
            continue
        if one.phone != third.phone or one.phone == two.phone or a == x:
            continue
        if (one.speaker == third.speaker) != (mode == "within"):
            continue
        gain = between(x, b) - between(x, a)
        key = (one.phone, two.phone), one.speaker, third.speaker, one.context
        cells.setdefault(key, []).append(0.5 if abs(gain) < 1e-9 else float(gain > 0))
    scores = {key: np.mean(values) for key, values in cells.items()}
    scores = slow_means(scores, 3 if rule == "zerospeech2020" else 2)
    return 100 * (1 - np.mean(list(slow_means(scores, 1).values())))


def slow_means(scores, size):
    """Means of the scores whose keys begin with the same `size` labels."""
    groups = {}
    for key, score in scores.items():
        groups.setdefault(key[:size], []).append(score)
    return {key: np.mean(values) for key, values in groups.items()}


def random_case(seed, kind, count=24):
    """Items, a file each, and their features: a list of (frames, dim), values >= 0."""
    rng = np.random.default_rng(seed)
    items = [
        Item(f"f{number}", 0.0, 9.0, rng.choice(list("abc")), (rng.choice(list("pk")), "t"), rng.choice(list("xyz")))
        for number in range(count)
    ]
    lengths, book = rng.integers(1, 7, count), rng.random((5, 3))
    if kind == "continuous":
        features = [rng.random((length, 5)) for length in lengths]
    elif kind == "codes":  # one-hot: many paths cost the same
        features = [np.eye(4)[rng.integers(0, 4, length)] for length in lengths]
    elif kind == "codebook":  # vectors in use over and over
        features = [book[rng.integers(0, 5, length)] for length in lengths]
    else:
        features = [rng.random((length, 5)) * rng.integers(0, 3, (length, 1)) for length in lengths]
    return items, features


@pytest.mark.parametrize(
    "kind, distance",
    [
        (kind, distance)
        for kind in ("continuous", "codes", "codebook", "with zeros")
        for distance in DISTANCES
        if (kind, distance) != ("with zeros", "kl")
    ],
)  # that is not a number
def test_against_a_slow_version(kind, distance, monkeypatch):
    monkeypatch.setattr(abx, "CHUNK", 100)
    monkeypatch.setattr(abx, "TRIPLETS", 50)
    if kind in ("continuous", "with zeros"):
        monkeypatch.setattr("pyspeech.units.abx_distances.MAX_TABLE", 0)
    items, features = random_case(len(kind), kind)
    files = {item.file: frames for item, frames in zip(items, features, strict=True)}
    between = functools.lru_cache(None)(lambda x, y: slow_distance(features[x], features[y], distance))
    for mode, rule in itertools.product(abx.MODES, abx.RULES):
        error = score_items(items, files, distance, mode, rule, frame_rate=1)
        assert error == pytest.approx(slow_error(items, between, mode, rule), abs=1e-9), (mode, rule)


@pytest.mark.parametrize("kind", ["continuous", "codes", "codebook"])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("batch", [1 << 20, 300])
def test_distances_of_pairs_in_both_directions(kind, distance, batch, monkeypatch):
    monkeypatch.setattr("pyspeech.units.abx_distances.BATCH_ELEMENTS", batch)
    _, features = random_case(7, kind, count=12)
    features += [features[0][:1], np.repeat(features[1], 4, axis=0)]
    lengths = np.array([len(frames) for frames in features])
    first, second = np.triu_indices(len(features))
    found = pair_distances(
        FrameDistances(np.concatenate(features), distance), np.cumsum(lengths) - lengths, lengths, first, second
    )
    expected = [
        (slow_distance(features[i], features[j], distance), slow_distance(features[j], features[i], distance))
        for i, j in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_direction_matters_where_paths_tie():
    """Codes A C B A against B A A B: a path of 5 frame pairs at a cost of 1.5, or the other way round of 4."""
    frames, lengths = np.eye(3)[[0, 2, 1, 0, 1, 0, 0, 1]], np.array([4, 4])
    found = pair_distances(FrameDistances(frames, "cosine"), np.array([0, 4]), lengths, np.array([0, 1]), np.array([1, 0]))
    np.testing.assert_allclose(found, [(0.25, 0.3), (0.3, 0.25)], atol=1e-12)


def test_processes_and_progress_change_nothing(monkeypatch):
    monkeypatch.setattr(abx, "CHUNK", 100)
    items, features = random_case(3, "continuous")
    frames = abx.load_frames(items, {item.file: values for item, values in zip(items, features, strict=True)}, 1)
    alone = abx.score_cells(items, frames)
    several = abx.score_cells(items, frames, jobs=2, progress="ABX")
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(alone, several, strict=True))


def test_order_of_items_does_not_matter():
    items, features = made_up()
    assert score_items(items, features, frame_rate=100) == score_items(items[::-1], features, frame_rate=100)


def test_same_vectors_everywhere_are_ties():
    items, features = made_up()
    silence = {name: np.tile(np.linspace(0.1, 0.9, 39), (len(values), 1)) for name, values in features.items()}
    assert [score_items(items, silence, distance, frame_rate=100) for distance in ("cosine", "kl")] == [50, 50]
    zero = {name: 0 * values for name, values in silence.items()}
    assert score_items(items, zero, "cosine", frame_rate=100) == 50


def test_kl_of_negative_values_is_fifty_with_a_warning(caplog):
    items, features = made_up()
    negative = {name: values - 2.0 * (values == 0) - [0.5, 0.9] for name, values in features.items()}
    assert score_items(items, negative, "kl", frame_rate=100) == 50
    assert len(caplog.records) == 1 and "no meaning" in caplog.text and "50 % where" in caplog.text


def test_kl_of_log_posteriors_is_warned_of(caplog):
    """Divided by their sum they are positive again, so that no distance is missing."""
    items, features = made_up()
    rng = np.random.default_rng(0)
    score_items(items, {name: rng.dirichlet(np.ones(4), len(rows)) for name, rows in features.items()}, "kl", frame_rate=100)
    assert not caplog.records
    logarithms = {name: np.log(rng.dirichlet(np.ones(4), len(rows))) for name, rows in features.items()}
    score_items(items, logarithms, "kl", frame_rate=100)
    assert "not their logarithms): triplets without a distance count as ties, an error of 50 % where" in caplog.text


@pytest.mark.parametrize("distance", ["cosine", "kl"])
def test_code_numbers_score_as_their_one_hot_vectors(distance):
    items, features = made_up()
    rng = np.random.default_rng(1)
    codes = {name: rng.choice([3, 0, 17, 5], len(rows)) for name, rows in features.items()}
    onehot = {name: np.eye(18)[of_file] for name, of_file in codes.items()}
    numbers = {name: of_file[:, None] for name, of_file in codes.items()}
    found = score_items(items, numbers, distance, frame_rate=100)
    assert found == score_items(items, onehot, distance, frame_rate=100) and found != (50, 50)
    levels = {name: of_file[:, None] + 0.5 for name, of_file in codes.items()}
    fails(f"--distance {distance}: features of one number a frame", items, levels, distance=distance)


def test_half_the_frame_rate_is_remarked_on(caplog):
    items, features = made_up()
    score_items(items, features, frame_rate=100)
    assert not caplog.records
    score_items(items, features, frame_rate=50)
    assert "the items end after 50 % of the frames of their files at most: at 50 frames a second" in caplog.text
    caplog.clear()
    timed = {name: (rows, np.arange(len(rows)) / 50) for name, rows in features.items()}
    score_items(items, timed, frame_rate=None)
    assert "frames a second the features last longer" not in caplog.text


def test_any_context():
    """As if all items stood between the same phones: triplets of two contexts count too."""
    items, features = made_up()
    same = [item._replace(context=("x", "y")) for item in items]
    found = score_items(in_any_context(items), features, frame_rate=100)
    assert found == score_items(same, features, frame_rate=100) != score_items(items, features, frame_rate=100)


def test_frames_of_an_item():
    """Centres at 5, 15, 25, ... ms; those on an edge belong, also where the edge is rounded."""
    values = np.arange(10.0)[:, None]

    def chosen(onset, offset, features=values, rate=100):
        frames = abx.load_frames([Item("f", onset, offset, "a", ("b", "c"), "s")], {"f": features}, rate)
        return frames.values[:, 0].tolist()

    assert chosen(0.0, 0.02) == [0, 1] and chosen(0.005, 0.025) == [0, 1, 2] and chosen(0.0051, 0.0249) == [1]
    assert chosen(0.07 + 0.005, 0.3 * 0.3 + 0.005) == [7, 8, 9] and chosen(0.05, 9.0) == [5, 6, 7, 8, 9]
    assert chosen(0.5, 1.5, (values[:4], np.array([0.0, 0.5, 1.5, 1.6])), None) == [1, 2]
    assert chosen(0.8, 1.1, (values[:4], np.array([0.0, 0.5, 1.5, 1.6])), None) == [1]


def test_short_items_get_their_nearest_frame(caplog):
    features = {"f": np.arange(10.0)[:, None], "g": np.full((1, 1), 7.0)}
    items = [
        Item("f", 0.011, 0.013, "a", ("", ""), "s"),
        Item("f", 0.097, 0.12, "a", ("", ""), "s"),
        Item("g", 0.0, 0.004, "a", ("", ""), "s"),
        Item("f", 0.0, 0.02, "a", ("", ""), "s"),
    ]
    frames = abx.load_frames(items, features, 100)
    chosen = [frames.values[start : start + length, 0].tolist() for start, length in zip(*frames[1:], strict=False)]
    assert chosen == [[1], [9], [7], [0, 1]]
    assert "3 of 4 items have no frame" in caplog.text


def test_items_behind_the_last_frame_are_remarked_on(caplog):
    """Snippets of 20 frames, 100 a second: an item that ends 3 frames behind the last is none, at 1000 Hz all are."""
    features = {name: np.arange(20.0)[:, None] for name in "fg"}
    items = [Item("f", 0.0, 0.2, "a", ("", ""), "s"), Item("g", 0.0, 0.22, "a", ("", ""), "s")]
    abx.load_frames(items, features, 100)
    abx.load_frames(items, {name: (values[:1], np.array([0.1])) for name, values in features.items()})
    assert not caplog.records
    abx.load_frames(items, features, 1000)
    assert "2 of 2 items end more than 3 frames behind the last frame of their file (f: expected by 0.022" in caplog.text


def test_folders_of_features(tmp_path):
    items, features = made_up()
    expected = score_items(items, features, frame_rate=100)
    for name, values in features.items():
        times = (np.arange(len(values)) + 0.5) / 100
        for folder in ("txt", "npy", "npz"):
            (tmp_path / folder).mkdir(exist_ok=True)
        np.savetxt(tmp_path / "txt" / f"{name}.txt", values)
        np.save(tmp_path / "npy" / f"{name}.npy", values)
        np.savez(tmp_path / "npz" / f"{name}.npz", features=values, times=times)
    assert [
        score_items(items, tmp_path / folder, frame_rate=rate) for folder, rate in (("txt", 100), ("npy", 100), ("npz", None))
    ] == [expected] * 3
    (tmp_path / "txt" / "s2.txt").write_text("")
    fails(r"s2\.txt: shape \(0, 0\); expected", items, tmp_path / "txt")
    (tmp_path / "txt" / "s2.txt").write_text("1 2\n3\n")
    fails(r"s2\.txt, line 2: 1 numbers; expected 2", items, tmp_path / "txt")
    (tmp_path / "txt" / "s2.txt").write_text("1.5 2 3\n")
    fails(r"s2\.txt: vectors of 3 numbers; expected 2", items, tmp_path / "txt")
    (tmp_path / "txt" / "s2.txt").unlink()
    fails(r"no features of s2; expected one of s2\.npy, s2\.npz, s2\.pt, s2\.txt", items, tmp_path / "txt")
    (tmp_path / "npy" / "s1.npy").write_bytes(b"")
    fails(r"s1\.npy: cannot be read", items, tmp_path / "npy")
    whole = (tmp_path / "npz" / "s3.npz").read_bytes()
    (tmp_path / "npz" / "s3.npz").write_bytes(whole[:-30])
    fails(r"s3\.npz: cannot be read", items, tmp_path / "npz")


def fails(message, items, features, rate=100, **options):
    with pytest.raises(UserError, match=message):
        score_items(items, features, frame_rate=rate, **options)


def test_what_cannot_be_scored_is_named():
    items, features = made_up()
    fails("no items to score", [], features)
    fails("no times of its frames", items, features, rate=None)
    fails("no features of s3", items, {name: features[name] for name in ("s1", "s2")})
    fails("s1: frames until 0.0.* s, but an item begins at", items, features, rate=1000)
    fails("without a single across-speaker triplet", items[:7], features)
    fails("s1: values that are no finite numbers", items, {**features, "s1": features["s1"] * np.nan})
    fails("distance euclidean", items, features, distance="euclidean")
    fails("rule mean", items, features, rule="mean")


def test_item_files(tmp_path):
    path = tmp_path / "x.item"
    path.write_text("#file onset offset #phone prev-phone next-phone speaker\nf 0.1 0.25 a p t s1\n\n")
    assert read_items(path) == [Item("f", 0.1, 0.25, "a", ("p", "t"), "s1")]
    path.write_text("#file_id speaker onset offset #phone next-phone prev-phone #word\nf s1 0.1 0.25 a t p cap\n")
    assert read_items(path) == [Item("f", 0.1, 0.25, "a", ("p", "t"), "s1")]
    path.write_text("#file onset offset #phone speaker\nf 0.1 0.25 a s1\n")
    with pytest.raises(UserError, match="x.item:1: a header without phone-before, phone-after"):
        read_items(path)
    for line, message in (
        ("f 0.1 0.2 a p s1", "x.item:2: 6 columns, of 7; expected `file onset"),
        ("f x 0.2 a p t s1", "x.item:2: times x 0.2"),
        ("f 0.3 0.2 a p t s1", "x.item:2: from 0.3 s to 0.2 s"),
        ("", "x.item: no items"),
    ):
        path.write_text(f"#file\n{line}\n")
        with pytest.raises(UserError, match=message):
            read_items(path)


def test_an_item_of_many_tokens_in_one_context():
    """One cell has 60 x 60 x 59 triplets: scored in parts, against sorting of the distances of X."""
    rng = np.random.default_rng(0)
    items = [Item(f"f{number}", 0.0, 1.0, "ab"[number % 2], ("", ""), "s") for number in range(120)]
    features = {item.file: rng.random((1, 2)) for item in items}
    found = abx.score_cells(items, abx.load_frames(items, features, 1), mode="within")
    angle = np.array([np.arctan2(*features[item.file][0]) for item in items])
    gap = np.abs(angle[:, None] - angle)
    for phone, score in zip(found.phone_a, found.score, strict=True):
        mine, other = np.arange(120) % 2 == phone, np.arange(120) % 2 != phone
        right = [(gap[x, a] < gap[x, other]).mean() for x, a in itertools.permutations(np.flatnonzero(mine), 2)]
        assert score == pytest.approx(np.mean(right), abs=1e-12)
