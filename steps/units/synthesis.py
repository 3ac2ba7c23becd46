"""Speech from units in egs/zerospeech (Tjandra et al. 2020, section 4): the inverter, what is spoken, the submission.

models/synthesis/{vqvae,inverter}/model.pt   the system conf.synthesis of the first seed, the inverter of its codes
wavs/<voice>_<rest of the utterance's name>.wav   test utterances from their codes, 16 kHz, 16 bit
submission/   units and speech in the format of ZeroSpeech 2020 (pyspeech/units/submission.py)
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from pyspeech.engine.process import model_processes
from steps.units.train import run_training

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment


def units_of(exp: Experiment, conf: Any) -> Path:
    """The folder of the units that are spoken: an array file of code vectors for each test utterance."""
    return exp.dir / "units" / conf.synthesis / str(conf.seeds[0])


def train_inverter(exp: Experiment, conf: Any) -> None:
    """Train the inverter: from units to speech of all voices.

    models/synthesis, from the corpus's voices, all in one inverter. Goes on after a kill.
    """
    from pyspeech.compat import default_device
    from pyspeech.units.checkpoint import Bundle, load_model, save_pair
    from pyspeech.units.config import VQVAE
    from pyspeech.units.dataset import UnitDataset, speakers_of
    from pyspeech.units.inverter import Inverter
    from pyspeech.units.training import InverterTraining

    seed = conf.seeds[0]
    vqvae = load_model(exp.dir / "models" / conf.synthesis / str(seed), VQVAE, default_device())
    cuts = load_cuts(exp.dir / "corpus", "voice")
    voices = speakers_of(cuts)
    config = replace(conf.inverter, bins=vqvae.features.magnitudes.num_bins, repeat=vqvae.model.config.stride)
    exp.log.info("inverter of %s, seed %d: %d utterances of %s", conf.synthesis, seed, len(cuts), ", ".join(voices))
    dataset = UnitDataset(voices, vqvae.features, conf.inverter_data, vqvae.stats, magnitudes=True)

    def make_training():
        return InverterTraining(Inverter(config, vqvae.model.codebook, len(voices)), vqvae.model)

    training = run_training(exp, make_training, dataset, cuts, replace(conf.inverter_train, seed=seed), "inverter")
    if training is None:  # it is another process's
        return
    inverter = Bundle(training.inverter, voices, vqvae.features, vqvae.stats)
    save_pair(exp.dir / "models" / "synthesis", vqvae, inverter)


def pairs_to_speak(corpus: Path, voices: Iterable[str], most: int) -> list[tuple[str, str]]:
    """[(utterance, voice), ...], sorted: as the corpus's synthesis.txt says, or `most` test utterances in every voice.

    These are chosen by their names alone, as many of one speaker as of another. voices: of the inverter.
    """
    if (corpus / "synthesis.txt").exists():
        lines = (corpus / "synthesis.txt").read_text(encoding="utf-8").splitlines()
        return sorted(tuple(line.split()) for line in lines)  # pyright: ignore[reportReturnType]
    by_speaker = {}
    for cut in sorted(load_cuts(corpus, "test"), key=lambda cut: zlib.crc32(cut.id.encode())):
        by_speaker.setdefault(cut.supervisions[0].speaker, []).append(cut.id)
    in_turn = sorted((place, speaker, name) for speaker, names in by_speaker.items() for place, name in enumerate(names))
    return sorted((name, voice) for _, _, name in in_turn[:most] for voice in voices)


def synthesize(exp: Experiment, conf: Any) -> None:
    """Speak test utterances from their units, each in every voice.

    wavs/ of all pairs to speak; a stage that was killed goes on with those that are missing.
    """
    import soxr

    from pyspeech.compat import default_device
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.checkpoint import load_pair
    from pyspeech.units.resynthesis import resynthesize
    from pyspeech.units.submission import RATE, synthesis_names, write_wave

    vqvae, inverter = load_pair(exp.dir / "models" / "synthesis", default_device())
    cuts, rate = {cut.id: cut for cut in load_cuts(exp.dir / "corpus", "test")}, vqvae.features.sampling_rate
    names = synthesis_names(pairs_to_speak(exp.dir / "corpus", inverter.speakers, conf.spoken))

    def speak(spoken):
        (utterance, voice), name = spoken
        samples = resynthesize(vqvae, inverter, read_samples(cuts[utterance], rate), voice)
        write_wave(exp.dir / "wavs" / name, soxr.resample(samples, rate, RATE))

    in_parts(
        exp.parts,
        "wavs",
        speak,
        {name: (spoken, name) for spoken, name in sorted(names.items())},
        model_processes(),
        files=lambda spoken: [exp.dir / "wavs" / spoken[1]],
        log=exp.log,
    )
    exp.log.info("%d utterances spoken: %s", len(names), exp.dir / "wavs")


def expected_of(
    corpus: str, language: str, cuts: Sequence[Cut], pairs: Iterable[tuple[str, str]]
) -> tuple[set[str], set[tuple[str, str]]]:
    """(test utterances, {(utterance, voice)}) that a submission is to hold: all of a release, what was left out too."""
    if corpus == "mini":
        return {cut.id for cut in cuts}, set(pairs)
    from pyspeech.units.challenge import expected_files

    ((utterances, wanted),) = expected_files(corpus, language).values()
    return utterances, set(pairs) if wanted is None else wanted


def make_submission(exp: Experiment, conf: Any) -> None:
    """Units and speech in the format of ZeroSpeech 2020, checked.

    submission/: units of all test utterances, what was spoken, metadata; then everything that is wrong with it.
    """
    import numpy as np

    from pyspeech.units import submission
    from pyspeech.units.checkpoint import load_pair

    folder, cuts = exp.dir / "submission", load_cuts(exp.dir / "corpus", "test")
    name = cuts[0].supervisions[0].language
    language = submission.folder_of(name)
    for cut in cuts:
        submission.write_embedding(folder, language, cut.id, np.load(units_of(exp, conf) / f"{cut.id}.npy"))
    vqvae, inverter = load_pair(exp.dir / "models" / "synthesis")
    pairs = pairs_to_speak(exp.dir / "corpus", inverter.speakers, conf.spoken)
    for wave in submission.synthesis_names(pairs).values():
        shutil.copyfile(exp.dir / "wavs" / wave, folder / submission.TRACK / language / "test" / wave)
    config, about = vqvae.model.config, conf.submission
    options = json.dumps(
        {"features": asdict(vqvae.features), "vqvae": asdict(config), "inverter": asdict(inverter.model.config)}, indent=1
    )
    submission.write_metadata(
        folder,
        about.author,
        about.affiliation,
        "dtw_cosine",
        f"{conf.synthesis}: VQ-VAE of {config.codes} codes, inverter, Griffin-Lim"
        + ("" if language == name else f"; the folder {language} holds the language {name} of corpus={conf.corpus}"),
        about.code and f"{about.code}\n\nOptions of the models ({name}):\n{options}",
    )
    problems = submission.check_submission(folder, {language: expected_of(conf.corpus, name, cuts, pairs)})
    for path, problem in problems:
        exp.log.warning("%s: %s", path, problem)
    exp.log.info(
        "%s: %s; the challenge wants the language %s too, and this is %s alone (utils/merge_submissions.py joins two)",
        folder,
        f"{len(problems)} problems" if problems else "nothing wrong",
        " and ".join(submission.missing_languages(folder)),
        name,
    )
