"""Stages of speech from units in egs/zerospeech: what is spoken, measures put together, the submission, tables."""

import json
import logging
import shlex
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from pyspeech.data.manifests import Utterance, load_cuts, write_manifest
from pyspeech.engine.parts import Parts
from pyspeech.features.config import MfccConfig
from pyspeech.units.checkpoint import Bundle, save_pair
from pyspeech.units.config import InverterConfig, SubmissionConfig, VqVaeConfig
from pyspeech.units.inverter import Inverter
from pyspeech.units.submission import check_submission, wave_problem
from pyspeech.units.voices import Voice
from pyspeech.units.vqvae import VqVae
from steps.units import synthesis, voices
from steps.units.tables import report, synthesis_parts

RATE = 16000
TEXTS = {"A_1": "Good day.", "A_2": "Yes", "B_1": "good  day", "B_3": "No", "C_4": None}


@pytest.fixture(scope="module")
def exp(tmp_path_factory):
    """An experiment of two voices, A and B, and a test speaker C, with models that have learnt nothing."""
    folder = tmp_path_factory.mktemp("exp ä")
    rng = np.random.default_rng(0)
    rows = []
    for name, text in TEXTS.items():
        path = folder / f"{name}.wav"
        pulses = np.zeros(8000)
        pulses[:: 80 if name[0] == "A" else 130] = 0.5
        soundfile.write(str(path), pulses + 0.01 * rng.standard_normal(8000), RATE, "PCM_16")
        rows.append((Utterance(name, str(path), text, "cs", name[0]), str(path), {"rate": RATE, "duration": 0.5}))
    (folder / "corpus").mkdir()
    write_manifest(folder / "corpus" / "test.jsonl.gz", rows)
    for part in ("unit", "voice"):
        write_manifest(folder / "corpus" / f"{part}.jsonl.gz", rows[:4])
    torch.manual_seed(0)
    vqvae = VqVae(VqVaeConfig(dim=8, heads=2, feedforward=8, layers=1, codes=8, code_dim=4, speaker_dim=2), 2)
    torch.nn.init.normal_(vqvae.quantizer.codebook)
    inverter = Inverter(InverterConfig(dim=8, heads=2, feedforward=8, conv_layers=1, layers=1), vqvae.codebook, 2)
    pair = (Bundle(model, ["A", "B"], MfccConfig(), None) for model in (vqvae, inverter))
    save_pair(folder / "models" / "synthesis", *pair)
    (folder / "units" / "trf128" / "7").mkdir(parents=True)
    for name in TEXTS:
        np.save(folder / "units" / "trf128" / "7" / f"{name}.npy", vqvae.codebook.numpy()[[0, 1, 1]])
    return SimpleNamespace(dir=folder, log=logging.getLogger("test"), parts=None, profile="mini", overrides=())


CONF = SimpleNamespace(synthesis="trf128", seeds=[7], spoken=4, recogniser="", corpus="mini", submission=SubmissionConfig())


def test_pairs_without_a_list(exp):
    everything = synthesis.pairs_to_speak(exp.dir / "corpus", ["A", "B"], 100)
    assert everything == sorted((name, voice) for name in TEXTS for voice in "AB")
    chosen = synthesis.pairs_to_speak(exp.dir / "corpus", ["A", "B"], 3)
    assert len(chosen) == 6 and {name[0] for name, _ in chosen} == {"A", "B", "C"}  # one of each speaker
    assert set(chosen) < set(synthesis.pairs_to_speak(exp.dir / "corpus", ["A", "B"], 4))


def test_pairs_of_the_corpus(exp, tmp_path):
    (tmp_path / "synthesis.txt").write_text("B_1 A\nA_2 B\n", encoding="utf-8")
    assert synthesis.pairs_to_speak(tmp_path, ["A", "B"], 1) == [("A_2", "B"), ("B_1", "A")]


def test_speech_is_made_once(exp):
    exp.parts = Parts(exp.dir / "parts")
    synthesis.synthesize(exp, CONF)
    waves = sorted((exp.dir / "wavs").glob("*.wav"))
    assert len(waves) == 8 and not any(map(wave_problem, waves))
    assert {soundfile.info(str(path)).frames for path in waves} == {8000}
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in waves]
    synthesis.synthesize(exp, CONF)
    assert [(path.stat().st_mtime_ns, path.read_bytes()) for path in waves] == before
    waves[0].unlink()
    synthesis.synthesize(exp, CONF)
    assert [path.read_bytes() for path in waves] == [content for _, content in before]


def test_submission(exp, caplog):
    synthesis.synthesize(exp, CONF)
    with caplog.at_level(logging.INFO):
        synthesis.make_submission(exp, CONF)
    assert "nothing wrong; the challenge wants the language surprise too, and this is cs alone" in caplog.text
    pairs = set(synthesis.pairs_to_speak(exp.dir / "corpus", ["A", "B"], 4))
    folder = exp.dir / "submission"
    assert check_submission(folder, {"english": (set(TEXTS), pairs)}) == []
    assert len((folder / "2019" / "english" / "test" / "A_1.txt").read_text().splitlines()) == 3
    assert "holds the language cs of corpus=mini" in (folder / "2019" / "metadata.yaml").read_text()


def test_measures(exp):
    synthesis.synthesize(exp, CONF)
    voices.score_synthesis(exp, CONF)
    measured = json.loads((exp.dir / "synthesis.json").read_text())
    assert [(entry["source"], entry["target"]) for entry in measured["pairs"]] == [
        (source, target)
        for source in "ABC"
        for target in "AB"
        if any(name[0] == source for name, _ in synthesis.pairs_to_speak(exp.dir / "corpus", ["A", "B"], 4))
    ]
    assert sum(entry["utterances"] for entry in measured["pairs"]) == 8
    own = [entry for entry in measured["pairs"] if entry["source"] == entry["target"]]
    assert all(entry["references"] == entry["utterances"] and entry["distance"] > 0 for entry in own)
    assert measured["griffin_lim"]["utterances"] == 4 and measured["griffin_lim"]["snr_db"] > 10
    assert measured["real_time"] > 0
    assert measured["conversions"]["utterances"] == sum(
        entry["utterances"] for entry in measured["pairs"] if entry["source"] != entry["target"]
    )


def test_measures_of_an_embedder_and_a_recogniser(exp, tmp_path, monkeypatch):
    """Embeddings that say which voice it is by the pulses' period; a recogniser that hears "good day" in everything."""

    def embed(samples):
        spectrum = np.abs(np.fft.rfft(samples - samples.mean(), 16000))
        return np.array([spectrum[200], spectrum[123]]) / np.hypot(spectrum[200], spectrum[123])

    script = tmp_path / "hear it.py"
    script.write_text("import sys\nfor path in sys.argv[2:]: print('good day')\n")
    monkeypatch.setattr("pyspeech.units.voices.load_embedder", lambda: embed)
    synthesis.synthesize(exp, CONF)
    command = shlex.join([sys.executable, str(script), "--option"])
    voices.score_synthesis(exp, SimpleNamespace(**{**vars(CONF), "recogniser": command}))
    measured = json.loads((exp.dir / "synthesis.json").read_text())
    own = measured["originals"]["similarity"]
    assert own["target"] > 0.99 and own["other"] < 0.5  # of the recordings themselves
    for entry in measured["pairs"] + [measured["conversions"]]:
        assert -1e-6 <= entry["similarity"]["target"] <= 1 + 1e-6
    spoken = {name for name, _ in synthesis.pairs_to_speak(exp.dir / "corpus", ["A", "B"], 4)}
    texts = {"A_1": (0, 8), "A_2": (8, 3), "B_1": (0, 8), "B_3": (7, 2)}  # yes has no letter in its place, no has one
    expected = [sum(texts[name][place] for name in spoken & set(texts)) for place in (0, 1)]
    assert [measured["recordings"][name] for name in ("errors", "characters")] == expected
    assert measured["recordings"]["utterances"] == len(spoken & set(texts))
    by_pair = {(entry["source"], entry["target"]): entry["recognition"] for entry in measured["pairs"]}
    assert by_pair["C", "A"] == {"utterances": 0, "errors": 0, "characters": 0, "rate": None}  # has no text
    assert sum(entry["errors"] for entry in by_pair.values()) == 2 * expected[0] and measured["recogniser"] == command
    assert measured["conversions"]["recognition"]["errors"] == sum(
        entry["errors"] for (source, target), entry in by_pair.items() if source != target
    )


def test_references_are_the_same_sentence(exp):
    cuts = {cut.id: cut for cut in load_cuts(exp.dir / "corpus", "test")}
    reference = voices.find_references(exp.dir / "corpus")
    assert reference(cuts["A_1"], "B").id == "B_1" and reference(cuts["B_1"], "A").id == "A_1"
    assert reference(cuts["A_2"], "A").id == "A_2" and reference(cuts["A_2"], "B") is None
    assert reference(cuts["C_4"], "A") is None and reference(cuts["C_4"], "C").id == "C_4"


def test_margin_is_to_the_speaker_or_to_all_other_voices(monkeypatch):
    known = {name: Voice(np.full(13, float(mean)), np.eye(13), 100) for name, mean in (("A", 0), ("B", 1), ("S", 2))}
    monkeypatch.setattr("pyspeech.units.voices.voice_frames", lambda samples: np.full((5, 13), samples))
    # log likelihoods differ by 13 (d1^2 - d2^2) / 2
    assert voices.margin(0.25, "A", "S", ["A", "B"], known) == pytest.approx(6.5 * (1.75**2 - 0.25**2))
    assert voices.margin(0.75, "A", "A", ["A", "B"], known) == pytest.approx(6.5 * (0.25**2 - 0.75**2))
    assert voices.margin(0.0, "A", "A", ["A"], known) is None
    assert voices.margin(0.0, "A", "unknown", ["A", "B"], known) is None
    monkeypatch.setattr("pyspeech.units.voices.voice_frames", lambda samples: np.zeros((0, 13)))
    assert voices.margin(0.0, "A", "S", ["A", "B"], known) is None


def test_summaries():
    entries = [(0.5, 4.0), (-0.5, None), (None, 6.0), (2.0, None)]
    assert voices.summarize(entries) == {"utterances": 4, "nearer": pytest.approx(2 / 3), "distance": 5.0, "references": 2}
    assert voices.summarize([(None, None)]) == {"utterances": 1, "nearer": None, "distance": None, "references": 0}
    assert voices.share([]) == {"utterances": 0, "nearer": None}


def test_griffin_lim_of_silence_is_not_measured(tmp_path):
    soundfile.write(str(tmp_path / "s.wav"), np.zeros(4000), RATE, "PCM_16")
    path = str(tmp_path / "s.wav")
    row = (Utterance("s", path, None, "cs", "A"), path, {"rate": RATE, "duration": 0.25})
    write_manifest(tmp_path / "s.jsonl.gz", [row])
    assert voices.measure_griffin_lim(load_cuts(tmp_path, "s"), MfccConfig().magnitudes) == ([], None)


def made_up(pairs):
    return {
        "system": "trf128",
        "seed": 42,
        "codes": 128,
        "pairs": pairs,
        "real_time": None,
        "conversions": {"utterances": 20, "nearer": 0.75},
        "originals": {"utterances": 0, "nearer": None},
        "griffin_lim": {"utterances": 0, "snr_db": None},
    }


def test_section_of_the_results():
    pair = {"source": "V001", "target": "V002", "utterances": 20, "nearer": 0.75, "distance": None, "references": 0}
    own = {**pair, "target": "V001", "nearer": None, "distance": 6.125, "references": 20}
    text = "\n\n".join(synthesis_parts(made_up([own, pair]), "exp/mini/models/synthesis"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:6] == "| V001"]
    assert rows == [["V001 spoken by V001", "20", "–", "6.12", "20"], ["V001 spoken by V002", "20", "75.0", "–", "0"]]
    assert "recordings, own voice" not in text and "Griffin-Lim" not in text
    assert "utils/resynthesize.py FILE --model exp/mini/models/synthesis --speaker V001" in text
    assert "similarity" not in text.lower() and "CER" not in text
    many = synthesis_parts(made_up([{**pair, "source": f"S{number}"} for number in range(40)]), "x")
    assert "S12" not in "".join(many) and "all in another's voice" in "".join(many)
    assert "Speech from units" not in report({}, "note", "run")


def test_section_of_the_results_with_all_that_can_be_measured():
    measured = made_up(
        [
            {
                "source": "A",
                "target": "B",
                "utterances": 2,
                "nearer": 1.0,
                "distance": None,
                "references": 0,
                "similarity": {"target": 0.755, "other": None},
                "recognition": {"utterances": 2, "rate": 0.0},
            }
        ]
    )
    measured["conversions"].update(similarity={"target": 0.5, "other": 0.25}, recognition={"utterances": 2, "rate": 0.5})
    measured.update(recordings={"utterances": 3, "errors": 1, "characters": 8, "rate": 0.125}, recogniser="listen --x")
    text = "\n\n".join(synthesis_parts(measured, "m"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    assert rows[0] == ["Speech", "utterances", "nearer to the voice", "MCD / dB", "of", "similarity", "other", "CER"]
    assert rows[2:] == [
        ["A spoken by B", "2", "100.0", "–", "0", "0.76", "–", "0.0"],
        ["all in another's voice", "20", "75.0", "–", "–", "0.50", "0.25", "50.0"],
        ["recordings, recognised", "3", "–", "–", "–", "–", "–", "12.5"],
    ]
    assert "`listen --x`" in text and "Resemblyzer" in text
