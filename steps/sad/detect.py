"""Detectors over the streams of a corpus: statistical SAD, WebRTC, trained networks. Shared by SAD recipes.

Each function takes cuts (a Lhotse CutSet with one cut a stream) and writes one official hypothesis file a stream, so
that `utils/score_sad.py` can score any of the folders again. A stream is a part of its stage (pyspeech.engine.parts): one that
was killed goes on with the streams that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.engine.parts import Parts, fingerprint, in_parts
from steps.sad.systems import SAMPLING_RATE

if TYPE_CHECKING:
    import numpy as np
    from lhotse.cut.data import DataCut

    from pyspeech.engine.run import Experiment
    from pyspeech.features.config import StftConfig
    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.networks import SadNetwork
    from pyspeech.sad.thresholds import Sweep

Voter = tuple[Path, float, str]  # of a network: the folder of its scores, its threshold, its smoothing


def cut_path(cut: DataCut) -> str:
    """The audio file behind a cut that is one whole stream."""
    return cut.recording.sources[0].source  # pyright: ignore[reportOptionalMemberAccess, reportReturnType]


def blocks(cut: DataCut) -> Iterator[np.ndarray]:
    """The samples of a stream, block by block."""
    from pyspeech.audio.io import stream_audio

    return stream_audio(cut_path(cut), SAMPLING_RATE)


def detect_statistical(
    cuts: Sequence[DataCut],
    config: StatisticalConfig,
    folders: Mapping[Path, tuple[StatisticalConfig, float]],
    parts: Parts | None = None,
) -> None:
    """Statistical SAD (paper, section 2) of every stream. folders: {folder of hypotheses: (its StatisticalConfig, of which
    only `decision` and `voicing` may differ from `config`, which has voicing if any has; its log-likelihood ratio from
    which on a frame is speech)}; a stream is read once, for all of them."""
    from pyspeech.sad.stat_energies import frame_energies
    from pyspeech.sad.statistical import decide

    for each, _ in folders.values():
        each.check()

    def detect(cut):
        energies = frame_energies(blocks(cut), config)
        return [decide(energies, *how).decisions for how in folders.values()]

    _write_hypotheses(parts, "statistical", cuts, detect, folders, config.frame_shift)


def baseline_features(cut: DataCut) -> np.ndarray:
    """The features of Combo-SAD of a stream, as pyspeech.sad.combo gives them."""
    import numpy as np

    from pyspeech.sad.combo import combo_features

    return combo_features(np.concatenate(list(blocks(cut))), SAMPLING_RATE)


def detect_baseline(
    cuts: Sequence[DataCut], direction: np.ndarray, folders: Mapping[Path, float], parts: Parts | None = None
) -> None:
    """Combo-SAD of every stream. direction: see pyspeech.sad.combo. folders: {folder of hypotheses: its threshold}; a
    stream is read once, for all of them."""
    from pyspeech.sad.combo import HOP_SECONDS, combo_scores

    def detect(cut):
        scores = combo_scores(baseline_features(cut), direction)
        return [scores > threshold for threshold in folders.values()]

    _write_hypotheses(parts, "baseline", cuts, detect, folders, HOP_SECONDS)


def detect_webrtc(cuts: Sequence[DataCut], folders: Mapping[Path, int], parts: Parts | None = None) -> None:
    """WebRTC's detector, 10 ms frames: the peer that everybody has installed. folders: {folder of hypotheses: its
    aggressiveness, 0 to 3}; a stream is read once, for all of them."""
    import numpy as np
    import webrtcvad

    def detect(cut):
        detectors = [webrtcvad.Vad(mode) for mode in folders.values()]
        rest = np.zeros(0, np.int16)
        decisions = [[] for _ in detectors]
        for block in blocks(cut):
            samples = np.concatenate([rest, np.clip(block * 32768, -32768, 32767).astype(np.int16)])
            whole = len(samples) // 80 * 80
            frames = [frame.tobytes() for frame in samples[:whole].reshape(-1, 80)]
            for detector, decided in zip(detectors, decisions, strict=True):
                decided.extend(detector.is_speech(frame, SAMPLING_RATE) for frame in frames)
            rest = samples[whole:]
        return [np.array(decided, dtype=bool) for decided in decisions]

    _write_hypotheses(parts, "webrtc", cuts, detect, folders)


def write_scores(model: SadNetwork, cut: DataCut, path: Path | str) -> None:
    """Network scores (T,) of a stream into an array file (float32, one a frame)."""
    import numpy as np

    from pyspeech.files import atomic_write
    from pyspeech.sad.decoding import score_stream

    with atomic_write(path, "wb") as stream:
        np.save(stream, score_stream(model, blocks(cut)))


def detect_networks(
    cuts: Sequence[DataCut], name: str, voters: Sequence[Voter], stft: StftConfig, folder: Path, parts: Parts | None = None
) -> None:
    """Hypotheses of the set `name` from stored scores of networks: the decisions of one, or the majority of several.

    voters: for each network (folder of its scores, threshold, smoothing). stft: StftConfig, whose frames the scores are of.
    """
    from pyspeech.sad.smoothing import decide, majority

    def detect(cut):
        return [majority([decide(read_scores(scores / name, cut), *how) for scores, *how in voters])]  # pyright: ignore[reportArgumentType]

    kind = f"networks {fingerprint(folder)}"
    _write_hypotheses(parts, kind, cuts, detect, {folder: voters}, stft.frame_shift, stft.frame_offset)


def labels_of_dev(exp: Experiment, cuts: Sequence[DataCut]) -> tuple[list[list[tuple[float, float, str]]], list[float]]:
    """Read the label rows and the seconds of each cut of dev, as pyspeech.sad.thresholds takes them."""
    return read_references(exp.dir / "corpus" / "reference" / "dev", cuts), [cut.duration for cut in cuts]


def read_references(folder: Path | str, cuts: Sequence[DataCut]) -> list[list[tuple[float, float, str]]]:
    """The label rows of each cut."""
    from pyspeech.sad.formats import read_reference

    return [read_reference(Path(folder) / f"{cut.recording_id}.txt") for cut in cuts]


def read_scores(folder: Path | str, cut: DataCut) -> np.ndarray:
    """Read the scores that `write_scores` stored for a stream: float32 (T,)."""
    import numpy as np

    return np.load(Path(folder) / f"{cut.recording_id}.npy")


def sweep_in_parts(kind: str, cuts: Sequence[DataCut], sweep: Callable[..., list[Sweep]], exp: Experiment) -> list[Sweep]:
    """Sweep over the streams of dev, a stream a part; return a Sweep for each collar.

    sweep: sweep(cut, [its label rows], [its seconds]) -> that of the stream alone. kind: as for `in_parts`.
    """
    (found,) = sweeps_in_parts(kind, cuts, {"": sweep}, exp).values()
    return found


def sweeps_in_parts(
    kind: str, cuts: Sequence[DataCut], sweeps: Mapping[str, Callable[..., list[Sweep]]], exp: Experiment
) -> dict[str, list[Sweep]]:
    """The same for several of them, {name: sweep}: {name: what it gives}."""
    from pyspeech.sad.thresholds import Sweep, together

    streams = {
        f"{name} {cut.recording_id}".strip(): (sweep, cut, [labels], [seconds])
        for name, sweep in sweeps.items()
        for cut, labels, seconds in zip(cuts, *labels_of_dev(exp, cuts), strict=True)
    }
    made = in_parts(
        exp.parts,
        kind,
        lambda part: [astuple(found) for found in part[0](*part[1:])],
        streams,
        inputs=lambda part: part[1:],
        log=exp.log,
    )
    by_stream = [[Sweep(*one) for one in found] for found in made.values()]
    return {name: together(by_stream[number * len(cuts) : (number + 1) * len(cuts)]) for number, name in enumerate(sweeps)}


def _write_hypotheses(parts, kind, cuts, detect, folders, frame_shift=0.01, frame_offset=0.0):
    """detect(cut) gives the decisions (T,) for each of the folders, {folder: what decides}, a set's. kind: as for
    `in_parts`."""
    from pyspeech.sad.formats import write_hypothesis
    from pyspeech.sad.segments import frames_to_segments

    def paths(cut):
        return [Path(folder) / f"{cut.recording_id}.txt" for folder in folders]

    def write(cut):
        for path, decisions in zip(paths(cut), detect(cut), strict=True):
            write_hypothesis(path, frames_to_segments(decisions, frame_shift, cut.duration, frame_offset), cut.duration)

    kind, streams = f"{kind} {Path(next(iter(folders))).name}", {cut.recording_id: cut for cut in cuts}
    in_parts(parts, kind, write, streams, inputs=lambda cut: (folders, cut), files=paths)
