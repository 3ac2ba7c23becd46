"""Detectors over the streams of a corpus: statistical SAD, WebRTC, trained networks. Shared by SAD recipes.

Each function takes cuts (a Lhotse CutSet with one cut a stream) and writes one official hypothesis file a stream, so
that `utils/score_sad.py` can score any of the folders again. Files that are there already are kept: a stage that was
killed goes on where it stopped.
"""
from pathlib import Path

from pyspeech.audio.io import stream_audio
from pyspeech.sad.formats import write_hypothesis
from pyspeech.sad.segments import frames_to_segments

SAMPLING_RATE = 8000  # of every detector here; other rates are resampled on reading


def cut_path(cut):
    """The audio file behind a cut that is one whole stream."""
    return cut.recording.sources[0].source


def detect_statistical(cuts, config, folder):
    """Statistical SAD (paper, section 2) of every stream; hypotheses into `folder`."""
    from pyspeech.sad.statistical import detect_stream

    def decide(cut):
        return detect_stream(stream_audio(cut_path(cut), SAMPLING_RATE), config).decisions

    _write_hypotheses(cuts, decide, folder, config.frame_shift)


def detect_webrtc(cuts, mode, folder):
    """WebRTC's detector in aggressiveness `mode` (0 to 3), 10 ms frames: the peer that everybody has installed."""
    import numpy as np
    import webrtcvad

    def decide(cut):
        detector = webrtcvad.Vad(mode)
        rest = np.zeros(0, np.int16)
        decisions = []
        for block in stream_audio(cut_path(cut), SAMPLING_RATE):
            samples = np.concatenate([rest, np.clip(block * 32768, -32768, 32767).astype(np.int16)])
            whole = len(samples) // 80 * 80
            frames = samples[:whole].reshape(-1, 80)
            decisions.extend(detector.is_speech(frame.tobytes(), SAMPLING_RATE) for frame in frames)
            rest = samples[whole:]
        return np.array(decisions, dtype=bool)

    _write_hypotheses(cuts, decide, folder)


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


def detect_network(cuts, scores_folder, frame_shift, threshold, smoothing, folder):
    """Hypotheses from the stored scores of a network, one every `frame_shift` seconds, at one threshold."""
    from pyspeech.sad.smoothing import decide

    _write_hypotheses(cuts, lambda cut: decide(read_scores(scores_folder, cut), threshold, smoothing), folder, frame_shift)


def sweep_scores(scores, cuts, references, smoothing, frame_shift):
    """The DCF without collar at 201 thresholds: a pyspeech.sad.thresholds.Sweep. `scores`: one (T,) a cut."""
    from pyspeech.sad.formats import read_reference
    from pyspeech.sad.thresholds import sweep

    labels = [read_reference(Path(references) / f"{cut.recording_id}.txt") for cut in cuts]
    return sweep(scores, labels, [cut.duration for cut in cuts], smoothing, frame_shift=frame_shift)


def read_scores(folder, cut):
    """What `score_streams` stored for a stream: float32 (T,)."""
    import numpy as np

    return np.load(Path(folder) / f"{cut.recording_id}.npy")


def _write_hypotheses(cuts, decide, folder, frame_shift=0.01):
    for cut in cuts:
        path = Path(folder) / f"{cut.recording_id}.txt"
        if not path.exists():
            speech = frames_to_segments(decide(cut), frame_shift, cut.duration)
            write_hypothesis(path, speech, cut.duration)
