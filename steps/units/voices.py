"""Scores of speech from units in egs/zerospeech, without listeners; for their worth see pyspeech/units/voices.py."""

from __future__ import annotations

import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from pyspeech.errors import UserError
from pyspeech.files import write_json
from steps.units.corpus import speaker_of, words_of
from steps.units.figures import draw_sentence
from steps.units.recognition import add_recognition
from steps.units.similarity import add_similarity
from steps.units.synthesis import pairs_to_speak

if TYPE_CHECKING:
    import numpy as np
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment
    from pyspeech.features.config import StftConfig
    from pyspeech.units.voices import Voice

TIMED = 20  # recordings that Griffin-Lim is measured on


def score_synthesis(exp: Experiment, conf: Any) -> None:
    """Similarity of the synthetic voices to their targets; a picture.

    figures/sentence.png, and synthesis.json:

    system, seed, codes: of the units that are spoken
    pairs: of each speaker and voice, the result of `summarize`
    conversions: "utterances" and the share "nearer" of all pairs of two speakers
    originals: "utterances", recordings of the voices in the test set (for a test set without them, 0), and the share
        "nearer" to their own voice: how far the measure can be trusted
    griffin_lim: of "utterances" recordings from their own magnitudes, the mean "snr_db" of the magnitudes
    real_time: Griffin-Lim's process time for a second of audio
    and the figures of steps.units.similarity and steps.units.recognition, where there is the package or a recogniser
    """
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.checkpoint import load_pair
    from pyspeech.units.submission import synthesis_names
    from pyspeech.units.voices import RATE

    vqvae, inverter = load_pair(exp.dir / "models" / "synthesis")
    names = synthesis_names(pairs_to_speak(exp.dir / "corpus", inverter.speakers, conf.spoken))
    test = {cut.id: cut for cut in load_cuts(exp.dir / "corpus", "test")}
    spoken = [test[name] for name in sorted({utterance for utterance, _ in names})]
    voices = fit_voices(exp.dir / "corpus", inverter.speakers, {speaker_of(cut) for cut in spoken}, exp.log)
    found = score_pairs(exp, names, test, voices, inverter.speakers)
    own = [
        margin(read_samples(cut, RATE), speaker_of(cut), speaker_of(cut), inverter.speakers, voices)
        for cut in spoken
        if speaker_of(cut) in inverter.speakers
    ]
    ratios, real_time = measure_griffin_lim(spoken[:TIMED], vqvae.features.magnitudes)
    measured = {
        "system": conf.synthesis,
        "seed": conf.seeds[0],
        "codes": vqvae.model.config.codes,
        "pairs": [
            {"source": source, "target": target, **summarize(entries)} for (source, target), entries in sorted(found.items())
        ],
        "conversions": share(
            [entry[0] for (source, target), entries in found.items() if source != target for entry in entries]
        ),
        "originals": share(own),
        "griffin_lim": {"utterances": len(ratios), "snr_db": mean(ratios)},
        "real_time": real_time,
    }
    add_similarity(measured, exp, names, test, inverter.speakers)
    add_recognition(measured, exp, conf.recogniser, names, test)
    draw_sentence(exp.dir / "wavs", vqvae, spoken, names, exp.dir / "figures" / "sentence.png")
    write_json(exp.dir / "synthesis.json", measured)
    exp.log.info("%s", one_line(measured))


def score_pairs(
    exp: Experiment,
    names: Mapping[tuple[str, str], str],
    test: Mapping[str, Cut],
    voices: Mapping[str, Voice],
    speakers: Sequence[str],
) -> dict[tuple[str, str], list[tuple[float | None, float | None]]]:
    """{(source, target): [(margin, distance), ...]} of what is spoken; names: {(utterance, voice): file in wavs/}."""
    from pyspeech.audio.io import read_audio
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.voices import RATE

    references, found = find_references(exp.dir / "corpus"), defaultdict(list)

    def score(spoken):
        (utterance, voice), name = spoken
        samples, _ = read_audio(exp.dir / "wavs" / name, RATE)
        source, reference = speaker_of(test[utterance]), references(test[utterance], voice)
        distance = None if reference is None else distortion(samples, read_samples(reference, RATE))
        return source, voice, margin(samples, voice, source, speakers, voices), distance

    parts = {name: (spoken, name) for spoken, name in sorted(names.items())}
    for source, voice, *measured in in_parts(exp.parts, "voices", score, parts, log=exp.log).values():
        found[source, voice].append(tuple(measured))
    return found


def fit_voices(corpus: Path, speakers: Sequence[str], needed: Iterable[str], log: logging.Logger) -> dict[str, Voice]:
    """{speaker: Voice}: of `speakers` by their training recordings, of others in `needed` by their test recordings."""
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.voices import RATE, fit_voice

    sets = {name: load_cuts(corpus, name) for name in ("voice", "test")}
    voices = {}
    for speaker in sorted({*speakers, *needed}):
        cuts = [cut for cut in sets["voice" if speaker in speakers else "test"] if speaker_of(cut) == speaker]
        try:
            voices[speaker] = fit_voice(read_samples(cut, RATE) for cut in cuts)
        except UserError as error:
            log.warning("%s: %s", speaker, error)
    return voices


def find_references(corpus: Path) -> Callable[[Cut, str], Cut | None]:
    """A function (cut, speaker) -> the cut of that speaker's recording of the same sentence, or None.

    An utterance is its own speaker's; of others it is one with the same words in the test or the training sets, where
    the corpus has texts.
    """
    said = {}
    for name in ("unit", "voice", "test"):
        said.update({(speaker_of(cut), words_of(cut)): cut for cut in load_cuts(corpus, name) if words_of(cut)})
    return lambda cut, speaker: cut if speaker == speaker_of(cut) else said.get((speaker, words_of(cut)))


def distortion(samples: np.ndarray, reference: np.ndarray) -> float | None:
    """Mel-cepstral distortion in dB; None where one of the two is silent."""
    from pyspeech.units.voices import mel_cepstral_distortion

    try:
        return mel_cepstral_distortion(samples, reference)
    except UserError:
        return None


def margin(samples: np.ndarray, target: str, source: str, speakers: Sequence[str], voices: Mapping[str, Voice]) -> float | None:
    """Margin in nats a frame by which a recording is nearer to `target` than to `source`.

    Where these are the same, than to any other of `speakers`. None without voiced frames, and where the statistics of one of
    them, or others, are missing.
    """
    from pyspeech.units.voices import log_likelihoods

    others = [source] if source != target else [speaker for speaker in speakers if speaker != target]
    if not others or any(speaker not in voices for speaker in [target, *others]):
        return None
    scores = log_likelihoods(samples, {speaker: voices[speaker] for speaker in [target, *others]})
    return None if scores is None else scores[target] - max(scores[speaker] for speaker in others)


def summarize(entries: Sequence[tuple[float | None, float | None]]) -> dict[str, Any]:
    """Summarise [(margin or None, distance or None), ...]: the share "nearer", the mean "distance" in dB and its number."""
    distances = [distance for _, distance in entries if distance is not None]
    return {**share([entry[0] for entry in entries]), "distance": mean(distances), "references": len(distances)}


def share(margins: Sequence[float | None]) -> dict[str, Any]:
    """ "utterances", how many; "nearer", the share of margins above 0 of those that are known, None without any."""
    known = [value > 0 for value in margins if value is not None]
    return {"utterances": len(margins), "nearer": mean(known)}


def mean(values: Sequence[float]) -> float | None:
    """As a float, None of none."""
    return float(statistics.mean(values)) if values else None


def measure_griffin_lim(cuts: Sequence[Cut], config: StftConfig) -> tuple[list[float], float | None]:
    """([spectral SNR in dB of each], process time for a second of audio): Griffin-Lim on the magnitudes of recordings.

    config: StftConfig. Silent recordings, whose magnitudes have no error, are left out.
    """
    import torch

    from pyspeech.data.cuts import read_samples
    from pyspeech.features.stft import MagnitudeStft
    from pyspeech.units.griffin_lim import griffin_lim, spectral_snr

    stft, ratios, used, seconds = MagnitudeStft(config), [], 0.0, 0.0
    for cut in cuts:
        magnitudes = stft(torch.from_numpy(read_samples(cut, config.sampling_rate))[None])[0]
        if magnitudes.any():
            begun = time.process_time()
            samples = griffin_lim(magnitudes, config)
            used, seconds = used + time.process_time() - begun, seconds + len(samples) / config.sampling_rate
            ratios.append(spectral_snr(magnitudes, stft(samples[None], len(magnitudes))[0]))
    return ratios, used / seconds if seconds else None


def one_line(measured: Mapping[str, Any]) -> str:
    """The figures of synthesis.json as text."""
    conversions, limit = measured["conversions"], measured["griffin_lim"]
    parts = [f"{conversions['utterances']} utterances in another voice"]
    if conversions["nearer"] is not None:
        parts.append(f"{100 * conversions['nearer']:.1f} % nearer to it than to the speaker")
    if limit["utterances"]:
        parts.append(f"Griffin-Lim {limit['snr_db']:.1f} dB, {measured['real_time']:.3f} of real time")
    return ", ".join(parts)
