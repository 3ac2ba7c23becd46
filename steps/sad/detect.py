"""Detectors over the streams of a corpus: statistical SAD, WebRTC, trained networks. Shared by SAD recipes.

Each function takes cuts (a Lhotse CutSet with one cut a stream) and writes one official hypothesis file a stream, so
that `utils/score_sad.py` can score any of the folders again. Files that are there already are kept: a stage that was
killed goes on where it stopped.
"""
from pathlib import Path

from pyspeech.audio.io import stream_audio
from pyspeech.sad.formats import write_hypothesis
from pyspeech.sad.segments import frames_to_segments
from steps.sad.systems import SAMPLING_RATE


def cut_path(cut):
    """The audio file behind a cut that is one whole stream."""
    return cut.recording.sources[0].source


def detect_statistical(cuts, config, folders):
    """Statistical SAD (paper, section 2) of every stream. folders: {folder of hypotheses: (its `decision`, hmm or
    threshold; its log-likelihood ratio from which on a frame is speech)}; a stream is read once, for all of them."""
    from dataclasses import replace

    from pyspeech.sad.stat_energies import frame_energies
    from pyspeech.sad.statistical import decide

    configs = {folder: replace(config, decision=decision) for folder, (decision, _) in folders.items()}
    for each in configs.values():
        each.check()

    def detect(cut, wanted):
        energies = frame_energies(stream_audio(cut_path(cut), SAMPLING_RATE), config)
        return [decide(energies, configs[folder], folders[folder][1]).decisions for folder in wanted]

    _write_hypotheses(cuts, detect, folders, config.frame_shift)


def baseline_features(cut):
    """The features of Combo-SAD of a stream, as pyspeech.sad.combo gives them."""
    import numpy as np

    from pyspeech.sad.combo import combo_features

    return combo_features(np.concatenate(list(stream_audio(cut_path(cut), SAMPLING_RATE))), SAMPLING_RATE)


def detect_baseline(cuts, direction, folders):
    """Combo-SAD of every stream. direction: see pyspeech.sad.combo. folders: {folder of hypotheses: its threshold}; a
    stream is read once, for all of them."""
    from pyspeech.sad.combo import HOP_SECONDS, combo_scores

    def detect(cut, wanted):
        scores = combo_scores(baseline_features(cut), direction)
        return [scores > folders[folder] for folder in wanted]

    _write_hypotheses(cuts, detect, folders, HOP_SECONDS)


def detect_webrtc(cuts, folders):
    """WebRTC's detector, 10 ms frames: the peer that everybody has installed. folders: {folder of hypotheses: its
    aggressiveness, 0 to 3}; a stream is read once, for all of them."""
    import numpy as np
    import webrtcvad

    def detect(cut, wanted):
        detectors = [webrtcvad.Vad(folders[folder]) for folder in wanted]
        rest = np.zeros(0, np.int16)
        decisions = [[] for _ in wanted]
        for block in stream_audio(cut_path(cut), SAMPLING_RATE):
            samples = np.concatenate([rest, np.clip(block * 32768, -32768, 32767).astype(np.int16)])
            whole = len(samples) // 80 * 80
            frames = [frame.tobytes() for frame in samples[:whole].reshape(-1, 80)]
            for detector, decided in zip(detectors, decisions):
                decided.extend(detector.is_speech(frame, SAMPLING_RATE) for frame in frames)
            rest = samples[whole:]
        return [np.array(decided, dtype=bool) for decided in decisions]

    _write_hypotheses(cuts, detect, folders)


def score_streams(model, cuts, folder, progress):
    """Network scores (T,) of every stream into `folder`/<recording>.npy (float32, one a frame)."""
    import numpy as np

    from pyspeech.files import atomic_write
    from pyspeech.sad.decoding import score_stream

    for cut in progress(cuts):
        path = Path(folder) / f"{cut.recording_id}.npy"
        if not path.exists():
            scores = score_stream(model, stream_audio(cut_path(cut), SAMPLING_RATE))
            with atomic_write(path, "wb") as stream:
                np.save(stream, scores)


def detect_networks(cuts, name, voters, stft, folder):
    """Hypotheses of the set `name` from stored scores of networks: the decisions of one, or the majority of several.

    voters: for each network (folder of its scores, threshold, smoothing). stft: StftConfig, whose frames the scores are of.
    """
    from pyspeech.sad.smoothing import decide, majority

    def detect(cut, wanted):
        return [majority([decide(read_scores(scores / name, cut), *how) for scores, *how in voters])]

    _write_hypotheses(cuts, detect, [folder], stft.frame_shift, stft.frame_offset)


def labels_of_dev(exp, cuts):
    """What a threshold is tuned on, as pyspeech.sad.thresholds takes it: the label rows and the seconds of each cut of dev."""
    return read_references(exp.dir / "corpus" / "reference" / "dev", cuts), [cut.duration for cut in cuts]


def read_references(folder, cuts):
    """The label rows of each cut."""
    from pyspeech.sad.formats import read_reference

    return [read_reference(Path(folder) / f"{cut.recording_id}.txt") for cut in cuts]


def read_scores(folder, cut):
    """What `score_streams` stored for a stream: float32 (T,)."""
    import numpy as np

    return np.load(Path(folder) / f"{cut.recording_id}.npy")


def _write_hypotheses(cuts, detect, folders, frame_shift=0.01, frame_offset=0.0):
    """detect(cut, wanted) gives the decisions (T,) for the folders `wanted`: those without the stream's file."""
    for cut in cuts:
        paths = {folder: Path(folder) / f"{cut.recording_id}.txt" for folder in folders}
        wanted = [folder for folder, path in paths.items() if not path.exists()]
        if wanted:
            for folder, decisions in zip(wanted, detect(cut, wanted)):
                speech = frames_to_segments(decisions, frame_shift, cut.duration, frame_offset)
                write_hypothesis(paths[folder], speech, cut.duration)
