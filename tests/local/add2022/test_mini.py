"""The mini corpus of genuine and fake speech: engines, recording chain, sets that share nothing, shortcuts."""

import gzip
import json
import logging
import random
import shutil
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from kill_harness import killed_until_it_ends
from scipy.signal.windows import hann
from tiny_audio import read_cuts

from local.add2022 import mini as add_mini, mini_sets as add_mini_sets, shortcuts
from local.synthesis import fake_speech, recording_chain, vocoders
from local.synthesis.recording_chain import MARGIN, RATE
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.pitch import fundamental_frequency
from pyspeech.files import is_temporary
from pyspeech.spoof.formats import labels_of

log = logging.getLogger("test")
FEW = {"train": 11, "dev": 3, "adapt": 2, "eval": 6}


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def vowel(seconds=1.0, pitch=120.0, seed=0):
    """Harmonics under two formants, with a little noise: (N,)."""
    time = np.arange(int(seconds * RATE)) / RATE
    total = 1e-4 * generator(seed).standard_normal(len(time))
    for harmonic in range(1, int(7000 / pitch)):
        frequency = harmonic * pitch
        gain = 1 / (1 + ((frequency - 700) / 150) ** 2) + 0.3 / (1 + ((frequency - 1900) / 250) ** 2) + 0.003
        total += 0.1 * gain * np.sin(2 * np.pi * (frequency * time + generator(harmonic).random()))
    return total


def pitch_of(samples):
    f0 = fundamental_frequency(samples, MfccConfig().log_mel).numpy()
    return np.median(f0[f0 > 0])


# Engines


@pytest.mark.parametrize("engine", vocoders.ENGINES)
def test_engines(engine):
    samples = vowel(0.8)
    made = vocoders.ENGINES[engine](samples, generator(1))
    assert made.shape == samples.shape and made.dtype == np.float64 and np.isfinite(made).all()
    assert np.array_equal(made, vocoders.ENGINES[engine](samples, generator(1)))  # the same every time
    assert 0.3 < made.std() / samples.std() < 3.0
    assert np.sqrt(np.mean((made - samples) ** 2)) > 0.05 * samples.std()  # and not the recording itself
    moved = pitch_of(made) / pitch_of(samples)
    if engine in ("world_convert", "phase_vocoder"):
        assert 0.7 < moved < 0.95 or 1.05 < moved < 1.4
    else:
        assert abs(moved - 1.0) < 0.03


@pytest.mark.parametrize("engine", vocoders.ENGINES)
@pytest.mark.parametrize(
    "samples", [np.zeros(4000), vowel(0.1), 0.01 * generator().standard_normal(2400)], ids=["silence", "short", "noise"]
)
def test_engines_at_their_edges(engine, samples):
    made = vocoders.ENGINES[engine](samples, generator())
    assert made.shape == samples.shape and np.isfinite(made).all()
    assert np.abs(made).max() < 10 * np.abs(samples).max() + 0.1


@pytest.mark.parametrize("length", [1, 100, 5000])
def test_short_time_spectra_and_back(length):
    samples = generator().standard_normal(length)
    assert np.allclose(vocoders.istft(vocoders.stft(samples), length), samples, atol=1e-9)
    assert np.allclose(vocoders.istft(vocoders.stft(samples, 256, 64), length, 256, 64), samples, atol=1e-9)
    middle = vocoders.stft(samples)[length // 512]  # a frame by itself
    padded = np.concatenate([np.zeros(512), samples, np.zeros(1024)])
    assert np.allclose(middle, np.fft.rfft(padded[length // 512 * 256 :][:1024] * hann(1024, sym=False)))


def test_linear_prediction_is_the_solution_of_the_normal_equations():
    from scipy.linalg import solve_toeplitz

    samples = vowel(0.1)
    filters, gains = vocoders.linear_prediction(samples, 10)
    window = np.concatenate([np.zeros(240), samples, np.zeros(240)])[5 * 80 :][:480] * hann(480, sym=False)
    correlation = np.array([window[: 480 - lag] @ window[lag:] for lag in range(19)])
    correlation /= np.sum(hann(480, sym=False) ** 2)
    correlation[0] = correlation[0] * 1.0001 + 1e-10
    expected = solve_toeplitz(correlation[:-1], -correlation[1:])
    assert np.allclose(filters[5], [1.0, *expected], atol=1e-6)
    assert gains[5] ** 2 == pytest.approx(correlation[0] + expected @ correlation[1:], rel=1e-6)


def test_conversion_moves_pitch_and_formants_as_drawn():
    samples = vowel(1.0, 150.0)
    for seed in range(4):
        rng = generator(seed)
        up = rng.random() < 0.5
        ratio = rng.uniform(1.1, 1.35) if up else rng.uniform(0.75, 0.9)
        assert pitch_of(vocoders.convert_world(samples, generator(seed))) == pytest.approx(150.0 * ratio, rel=0.02)


# The recording chain


def recording(**changes):
    drawn = recording_chain.draw(generator(3), 12000, 3400.0)
    return replace(drawn, **changes)


def test_the_line_changes_phases_alone():
    pulse = np.zeros(4000)
    pulse[1000] = 1.0
    sent = recording_chain.line(pulse, generator(3))
    heard = np.abs(np.fft.rfft(sent))[4000 * 80 // RATE : 4000 * 7500 // RATE]
    assert sent.shape == pulse.shape and np.allclose(heard, 1.0, atol=0.06)  # half a decibel
    assert np.abs(sent).max() < 0.5  # no pulse any more
    centre = np.sum(np.arange(4000) * sent**2) - 1000
    assert 0 < centre < recording_chain.DISPERSION * RATE


def test_the_limiter_turns_down_what_is_too_high():
    rng = generator(2)
    quiet = rng.standard_normal(8000)
    peaked = quiet.copy()
    peaked[3000:3010] *= 30.0
    assert np.array_equal(recording_chain.limited(quiet, 20.0), quiet)
    made = recording_chain.limited(peaked, 13.0)
    crest = 20 * np.log10(np.abs(made).max() / np.sqrt(np.mean(made**2)))
    assert 11.0 < crest < 13.5 < 20 * np.log10(np.abs(peaked).max() / np.sqrt(np.mean(peaked**2)))
    assert np.array_equal(made[:2000], peaked[:2000]) and np.all(np.sign(made) == np.sign(peaked))
    assert np.array_equal(recording_chain.limited(np.zeros(100), 13.0), np.zeros(100))


def test_chain_gives_what_was_drawn():
    speech = np.concatenate([np.zeros(6000), vowel(2.0), np.zeros(9000)])
    first, last = recording_chain.speech_bounds(speech)
    assert abs(first - 6000) < 800 and abs(last - 38000) < 800
    piece = recording_chain.cut(speech, 12000, generator())
    assert len(piece) == 12000 + 2 * MARGIN and recording_chain.speech_bounds(piece)[1] > 12000
    for level, band in ((-30.0, 3400.0), (-25.0, 6800.0)):
        made = recording_chain.record(piece, recording(level=level, band=band), generator(1))
        signal = made / 32768.0
        assert made.dtype == np.int16 and len(made) == 12000
        assert 10 * np.log10(np.mean(signal**2)) == pytest.approx(level, abs=0.1) and abs(signal.mean()) < 1e-4
        power = np.abs(np.fft.rfft(signal * np.hanning(len(signal)))) ** 2
        above, below = power[int((band + 300) * 12000 / RATE) :].mean(), power[: int(band * 12000 / RATE)].mean()
        assert 10 * np.log10(above / below) < -35.0
    assert np.array_equal(made, recording_chain.record(piece, recording(level=level, band=band), generator(1)))


def test_noise_floor_is_the_same_whatever_the_speech_brings_along():
    """Half a second of speech, half a second of pause: digital silence or noise."""
    pause = np.arange(16000 + 2 * MARGIN) % 16000 < 8000
    speech = np.resize(vowel(), len(pause)) * pause
    floors = []
    for own in (0.0, 0.0005, 0.002):
        noisy = speech + own * generator(5).standard_normal(len(speech))
        made = (
            recording_chain.record(noisy, recording(samples=16000, floor=-20.0, reverberation=0.0, band=6800.0), generator(1))
            / 32768.0
        )
        levels = recording_chain.frame_levels(made)
        floors.append(np.quantile(levels, 0.2) - np.quantile(levels, 0.95))
    assert np.ptp(floors) < 2.5 and -23.0 < np.mean(floors) < -17.0


def test_background_at_the_ratio_drawn():
    piece, noise = np.resize(vowel(), 16000 + 2 * MARGIN), generator(8).standard_normal(16000 + 2 * MARGIN)
    plain = recording(samples=16000, band=6800.0, floor=-60.0, reverberation=0.0, snr=6.0, equaliser=(0.0,) * 9)
    made = recording_chain.record(piece, plain, generator(1), noise) / 32768.0
    spectrum = np.abs(np.fft.rfft(made * np.hanning(len(made)))) ** 2
    harmonic = np.minimum(np.arange(len(spectrum)) % 120, -np.arange(len(spectrum)) % 120) < 8  # bins of 1 Hz
    inside = (np.arange(len(spectrum)) > 100) & (np.arange(len(spectrum)) < 6600)
    ratio = spectrum[inside & harmonic].sum() / (spectrum[inside & ~harmonic].mean() * 6700)
    assert 10 * np.log10(ratio) == pytest.approx(6.0, abs=1.5)


def test_short_and_silent_pieces():
    assert recording_chain.speech_bounds(np.zeros(3000)) == recording_chain.speech_bounds(np.zeros(10)) == (0, 0)
    assert len(recording_chain.cut(vowel(0.5), 20000, generator())) <= 8000 + 2 * MARGIN


# The check of shortcuts


def test_linear_check_finds_a_shortcut_and_nothing_else():
    rng = generator(4)
    genuine = rng.random(600) < 0.4
    features = rng.standard_normal((600, 6))
    features[:, 5] = 3.0  # never changes
    parts = slice(0, 400), slice(400, 600)
    clean = shortcuts.linear_check((features[parts[0]], genuine[parts[0]]), {"dev": (features[parts[1]], genuine[parts[1]])})
    assert 0.4 < clean["dev"] < 0.6
    features[:, 2] += 2.0 * genuine
    planted = shortcuts.linear_check((features[parts[0]], genuine[parts[0]]), {"dev": (features[parts[1]], genuine[parts[1]])})
    assert planted["dev"] == pytest.approx(0.16, abs=0.05)  # Phi(-1) = 0.159


def test_statistics_see_what_they_are_named_after():
    samples = np.rint(3000 * generator().standard_normal(8000)).astype(np.int16)
    plain = dict(zip(shortcuts.STATISTICS, shortcuts.file_statistics(samples), strict=True))
    silent = np.concatenate([np.zeros(1600, dtype=np.int16), samples])
    changed = dict(zip(shortcuts.STATISTICS, shortcuts.file_statistics(silent), strict=True))
    assert plain["leading silence"] == 0 and changed["leading silence"] == pytest.approx(8, abs=2)
    assert changed["zeros"] > 0.15 > plain["zeros"] and plain["samples mod 80"] == 0 and plain["samples mod 256"] == 64
    assert plain["rms"] == pytest.approx(20 * np.log10(3000 / 32768), abs=0.3) and plain["rolloff"] > 0.97
    for edge in (np.zeros(1, dtype=np.int16), np.zeros(500, dtype=np.int16)):
        assert np.isfinite(shortcuts.file_statistics(edge)).all() and np.isfinite(shortcuts.mel_statistics(edge)).all()


# The corpus


@pytest.fixture(scope="module")
def sources():
    return add_mini.find_sources(log)


@pytest.fixture(scope="module")
def corpus(sources, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(add_mini_sets, "GENUINE", FEW)
        patched.setattr(add_mini_sets, "FEWEST", 1)
        patched.setattr(add_mini_sets, "LONGEST", 1.5)
        counts = add_mini.prepare(folder, log, sources=sources)
        items = [item for part in FEW for item in add_mini_sets.plan(part, 1.0, add_mini.SEED, sources)]
    assert counts["train"] == {"genuine": 11, "fake": 22} and counts["eval"] == {"genuine": 6, "fake": 18}
    return folder, items


@pytest.mark.network
def test_corpus(corpus):
    folder, items = corpus
    for part in FEW:
        cuts = read_cuts(folder, part)
        labels = labels_of(cuts)
        planned = {item.id: item for item in items if item.part == part}
        assert set(labels) == set(planned)
        for cut in cuts:
            item, label, info = planned[cut.id], labels[cut.id], soundfile.info(cut.recording.sources[0].source)
            assert (info.samplerate, info.subtype, info.channels, info.format) == (RATE, "PCM_16", 1, "FLAC")
            assert info.frames == cut.num_samples == item.recording.samples
            assert (label.attack, label.condition, label.speaker) == (item.system, item.condition, item.speaker)
            assert label.genuine == (item.system == "-") and cut.supervisions[0].language == item.language
            samples = cut.load_audio()[0]
            assert np.abs(samples).max() < 0.99
            assert samples.std() == pytest.approx(10 ** (item.recording.level / 20), rel=0.1)
    check = json.loads((folder / "check.json").read_text())
    assert set(check) == {"files", "mel", "single"} and set(check["files"]) == {"dev", "adapt", "eval"}
    assert set(check["single"]) == set(shortcuts.STATISTICS)


@pytest.mark.network
def test_an_item_by_itself_gives_the_same_samples(corpus, sources):
    """In another order and process than in the corpus: nothing depends on what was made before."""
    folder, items = corpus
    chosen = [item for item in items[::-1] if item.part == "eval" and not item.texts]
    assert len(chosen) >= 6
    for item in chosen:
        made = add_mini.make(item, add_mini.voices.load_clip(item.clip, RATE), sources.engines)
        written, _ = soundfile.read(str(folder / "audio" / item.part / f"{item.id}.flac"), dtype="int16")
        assert np.array_equal(made, written), item.id


@pytest.mark.network
def test_a_copy_says_what_its_original_says_in_the_same_room(corpus):
    """By the levels of frames: nearly the original's, and not those of others."""
    folder, items = corpus

    def levels(name):
        samples, _ = soundfile.read(str(folder / "audio" / "train" / f"{name}.flac"))
        return recording_chain.frame_levels(samples)

    train = [item for item in items if item.part == "train"]
    copies = [item for item in train if item.system in ("world", "griffin_lim", "hifigan")]
    assert len(copies) > 5
    for item in train:
        (original,) = [other for other in train if other.id == item.original]
        assert original.system == "-" and (item.take, item.clip) == (original.take, original.clip)
    near = [np.corrcoef(levels(item.id), levels(item.original))[0, 1] for item in copies]
    far = [
        np.corrcoef(levels(one.id)[:120], levels(two.original)[:120])[0, 1]
        for one, two in zip(copies, copies[1:], strict=False)
    ]
    assert min(near) > 0.8 and np.median(far) < 0.5


@pytest.fixture(scope="module")
def plans(sources):
    return {part: add_mini_sets.plan(part, 0.15, add_mini.SEED, sources) for part in FEW}


@pytest.mark.network
def test_sets_share_no_speaker_clip_or_background(plans):
    for chosen in (lambda item: item.speaker, lambda item: item.clip, lambda item: item.background and item.background[0]):
        sets = [{chosen(item) for item in plan} - {()} for plan in plans.values()]
        assert sum(map(len, sets)) == len(set().union(*sets))
    languages = {part: {item.language for item in plan} for part, plan in plans.items()}
    assert not languages["eval"] & (languages["train"] | languages["dev"])


@pytest.mark.network
def test_engines_and_conditions_of_the_sets(plans):
    seen = {part: Counter(item.system for item in plan) for part, plan in plans.items()}
    for part, counts in seen.items():
        assert set(counts) == {"-", *add_mini_sets.ENGINES[part]}
    unheard = set(seen["eval"]) - set(seen["train"]) - set(seen["adapt"])
    assert unheard == {"sinusoidal", "phase_vocoder", "hifigan_lj", "kokoro", "piper", "flite_kal", "flite_parametric"}
    assert set(seen["eval"]) - {"-"} == set(add_mini_sets.ALL)
    families = [engine for family in add_mini_sets.FAMILIES.values() for engine in family]
    assert len(set(families)) == len(families) and set(add_mini_sets.NEURAL) < set(add_mini_sets.FAMILIES)
    for part, plan in plans.items():
        conditions = defaultdict(Counter)
        for item in plan:
            conditions[item.system == "-"][item.condition] += 1
        for counts in conditions.values():
            assert set(counts) == set(add_mini_sets.CONDITIONS[part]) and max(counts.values()) - min(counts.values()) <= 9
        assert all(bool(item.background) == (item.condition != "clean") for item in plan)
    assert all(item.language == "en" for item in plans["eval"] if item.system.startswith("flite"))
    assert {item.language for item in plans["eval"] if item.system in ("kokoro", "piper")} == {"en", "ca", "el", "bg"}


@pytest.mark.network
def test_fakes_are_as_long_as_genuine_ones_and_have_their_band(plans):
    narrow = {True: [], False: []}
    for plan in plans.values():
        genuine = {(item.clip, item.recording.samples) for item in plan if item.system == "-"}
        assert {(item.clip, item.recording.samples) for item in plan} == genuine
        assert all(1.26 * RATE < item.recording.samples <= 4 * RATE for item in plan)
        for item in plan:
            if "asterisk" in str(item.clip):
                assert item.recording.band == add_mini_sets.NARROW
            else:
                low, high = add_mini_sets.WIDE
                assert item.recording.band == add_mini_sets.NARROW or low <= item.recording.band <= high
                narrow[item.system == "-"].append(item.recording.band == add_mini_sets.NARROW)
    assert all(abs(np.mean(drawn) - add_mini_sets.NARROWED) < 0.1 for drawn in narrow.values())


@pytest.mark.network
def test_what_comes_without_noise_gets_that_of_recordings(plans):
    for plan in plans.values():
        for item in plan:
            quiet = item.system in fake_speech.QUIET
            assert -60.0 <= item.recording.floor <= (-16.0 if quiet else -30.0)
    noisy = [item.recording.floor for item in plans["train"] if item.system == "espeak" and "_fr" in item.clip.name]
    assert len(noisy) > 1 and -24.0 <= min(noisy) <= max(noisy) <= -16.0
    assert set(add_mini_sets.FLOORS) == {voice for part in add_mini_sets.SETS.values() for voice in part}


@pytest.mark.network
def test_level_is_drawn_without_regard_to_the_class(plans):
    drawn = [
        [item.recording.level for plan in plans.values() for item in plan if (item.system == "-") == kind]
        for kind in (True, False)
    ]
    assert abs(np.mean(drawn[0]) - np.mean(drawn[1])) < 1.5


@pytest.mark.network
def test_without_an_engine(sources, monkeypatch, caplog):
    def fails():
        raise UserError("no network")

    monkeypatch.setattr(fake_speech.flite, "libraries", fails)
    monkeypatch.setattr(fake_speech, "find_spec", lambda package: None if package == "onnxruntime" else True)
    engines = fake_speech.find_engines(log)
    assert [record.getMessage() for record in caplog.records] == [
        "no fakes of flite_kal and flite_parametric: no network",
        "no fakes of kokoro: the package onnxruntime is not installed; run ./path.sh, which installs it",
        "no fakes of piper: the package onnxruntime is not installed; run ./path.sh, which installs it",
    ]
    plan = add_mini_sets.plan("eval", 0.1, 1, replace(sources, engines=engines))
    left = set(add_mini_sets.ALL) - {"flite_kal", "flite_parametric", "kokoro", "piper"}
    assert {item.system for item in plan} == {"-", *left}


@pytest.mark.network
def test_killed_while_it_is_made(sources, tmp_path, monkeypatch):
    """SIGKILL again and again: the corpus of an undisturbed run."""
    monkeypatch.setattr(add_mini_sets, "GENUINE", dict.fromkeys(FEW, 2))
    monkeypatch.setattr(add_mini_sets, "FEWEST", 1)
    monkeypatch.setattr(add_mini_sets, "TASK", 2)
    monkeypatch.setattr(add_mini_sets, "SETS", {part: voices[:1] for part, voices in add_mini_sets.SETS.items()})
    quick = replace(sources, engines={name: sources.engines[name] for name in ("espeak", "lpc")})

    def make(folder):
        add_mini.prepare(folder / "corpus", log, sources=quick, parts=Parts(folder / "parts"))

    make(tmp_path / "whole")
    folder = tmp_path / "killed"
    assert killed_until_it_ends(lambda: make(folder), folder, random.Random(3), 120) > 1
    assert contents(folder) == contents(tmp_path / "whole")


def contents(folder):
    """{name: bytes} of the files of a corpus; manifests unpacked, without the folder's own name."""
    paths = [path for path in (folder / "corpus").rglob("*") if path.is_file() and not is_temporary(path.name)]
    assert len(paths) > 20
    found = {path.relative_to(folder): path.read_bytes() for path in paths}
    plain = {name: gzip.decompress(data) for name, data in found.items() if name.suffix == ".gz"}
    return {**found, **{name: data.replace(str(folder).encode(), b"") for name, data in plain.items()}}


@pytest.mark.network
def test_what_another_plan_left_is_removed(corpus, sources, tmp_path, monkeypatch):
    folder = shutil.copytree(corpus[0], tmp_path / "again")

    def dies(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(add_mini, "make_all", dies)
    monkeypatch.setattr(add_mini_sets, "SETS", {part: voices[:1] for part, voices in add_mini_sets.SETS.items()})
    with pytest.raises(KeyboardInterrupt):
        add_mini.prepare(folder, log, scale=0.001, sources=sources)
    assert not list(folder.glob("*.jsonl.gz")) and not list(folder.glob("*.json"))
    assert {path.stem for path in folder.rglob("*.flac")} <= {f"{part}-{number:05d}" for part in FEW for number in range(8)}


@pytest.mark.network
def test_one_line_where_it_cannot_be_made(sources, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="scale=2; expected more than 0 and at most 1"):
        add_mini.prepare(tmp_path, log, scale=2, sources=sources)
    with pytest.raises(UserError, match="1 clips with 1.3 s of speech, 5 wanted"):
        add_mini_sets.choose_clips(generator(), {"one": sources.clips["fillets-cs-big"]["fillets-cs-big"][:1]}, 5)
    monkeypatch.setenv("PYSPEECH_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("PYSPEECH_DEBIAN_MIRROR", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="no apt-get on this machine to download") as caught:
        add_mini.prepare(tmp_path / "out", log)
    assert "\n" not in str(caught.value)
