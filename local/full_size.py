"""Corpora as large as the official ones, in their layouts, from hard links to a few recordings: to see how a recipe bears it.

    mucs        MUCS 2021 subtask 1 (local/indic/mucs.py): six languages, 345,959 utterances to train with, 403.5 h
    fearless    Fearless Steps phase 2 (local/fearless/fearless_steps.py): 62.5, 15 and 20 hours of streams of 30 minutes
    add2022     ADD 2022 track 1 (local/add2022/add2022.py): 50,686 utterances of train and dev, 1,000 of adapt, 100,000 of eval
    zerospeech  ZeroSpeech 2019 (local/zerospeech/zerospeech2019.py), English: 5,941 utterances of 100 speakers, 3,533 of two
    voices

Each file is one of a few dozen pieces of the recordings, of the corpus's mean length and lengths about it. So its text says
nothing of it, whether it is a fake was drawn, and the system's cache soon holds all audio: disks are not tried. Streams are
such pieces with pauses between, and labelled so. The same recordings give the same corpus.
"""

import os
import shutil
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from statistics import NormalDist

import numpy as np

from pyspeech.audio.io import find_audio, read_audio
from pyspeech.data.audio_files import write_audio
from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.sad.formats import write_reference

LANGUAGES = {  # folder: (first character of the script, Hz, training utterances and hours, test utterances and hours)
    "Gujarati": (0x0A80, 16000, (22807, 40.0), (3075, 5.0)),
    "Hindi": (0x0900, 8000, (99925, 95.05), (3843, 5.55)),
    "Marathi": (0x0900, 8000, (79432, 93.89), (4675, 5.0)),
    "Odia": (0x0B00, 8000, (59782, 94.54), (3471, 5.49)),
    "Tamil": (0x0B80, 16000, (39131, 40.0), (3081, 5.0)),
    "Telugu": (0x0C00, 16000, (44882, 40.0), (3040, 5.0)),
}
STREAMS = {"Train": 125, "Dev": 30, "Eval": 40}
STREAM_SECONDS, PAUSES = 1800.0, (1.0, 20.0)  # of a stream; seconds between what is said in it
FAKES = {"train": (3012, 24072, "ADD_T"), "dev": (2307, 21295, "ADD_D"), "adapt": (300, 700, "ADD_A")}  # genuine, fake
UNLABELLED, FAKE_SECONDS = 100000, 3.2
UNITS, VOICES = (5941, 100, 15.67), {"V001": (970, 2.0), "V002": (2563, 2.6)}  # utterances, speakers, hours
SPOKEN, SPOKEN_SPEAKERS, SPOKEN_HOURS = 455, 24, 0.47
PIECES, SPREAD = 40, 0.4  # of a set; deviation of the logarithm of their lengths
CHARACTERS = 12  # of a text, a second
LONGEST, RATE = 1800.0, 16000  # seconds of recordings that are read, and Hz
WORDS = 5000  # of a language


def lay_out(name: str, recordings: Path | str, folder: Path | str, scale: float = 1.0) -> dict[str, float]:
    """Write a corpus of the sizes above times `scale` into `folder`, which has to be empty or missing.

    name: as above. recordings: folder of audio files of any kind (the first half hour of them is taken). Returns
    {"files": number of audio files, "hours": of them}. UserError where there is no audio, or too little.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: not empty; name another folder for a corpus, or remove it")
    corpus = Corpus(read_recordings(recordings), folder, scale)
    LAYOUTS[name](corpus)
    shutil.rmtree(folder / ".pieces")  # they are in their places under other names
    return {"files": corpus.files, "hours": corpus.seconds / 3600}


def read_recordings(folder: Path | str) -> np.ndarray:
    """Samples (N,) float32 at RATE of the recordings in a folder, one behind the other, half an hour at most."""
    parts, left = [], round(LONGEST * RATE)
    for path in find_audio([folder]):
        if left > 0:
            parts.append(read_audio(path, RATE)[0][:left])
            left -= len(parts[-1])
    samples = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    if len(samples) < 30 * RATE:
        raise UserError(f"{folder}: {len(samples) / RATE:.0f} s of audio; expected recordings of speech, half a minute or more")
    return samples


class Corpus:
    """Layout of a corpus in a folder, from samples (N,) at RATE. Numbers of files are times `scale`, at least 2."""

    def __init__(self, samples: np.ndarray, folder: Path, scale: float) -> None:
        self.samples, self.folder, self.scale, self.rng = samples, folder, scale, np.random.default_rng(1)
        self.files, self.seconds, self.begin = 0, 0.0, 0

    def number(self, full: int) -> int:
        return max(2, round(self.scale * full))

    def pieces(self, name: str, mean: float, rate: int) -> list[tuple[Path, float]]:
        """[(path, seconds)] of pieces of the recordings in .pieces/<name>: of lognormal lengths, their mean in seconds."""
        ranks = (np.arange(PIECES) + 0.5) / PIECES
        lengths = np.exp([SPREAD * NormalDist().inv_cdf(rank) for rank in ranks])
        made = []
        for number, seconds in enumerate(mean * lengths / lengths.mean()):
            samples = self.next_piece(seconds, rate)
            path = self.folder / ".pieces" / name / f"{number}.wav"
            write_audio(path, samples, rate)
            made.append((path, len(samples) / rate))
        return made

    def next_piece(self, seconds: float, rate: int) -> np.ndarray:
        """Samples of about so many seconds at a rate, from behind the piece before."""
        from scipy.signal import resample_poly

        places = (self.begin + np.arange(round(seconds * RATE))) % len(self.samples)
        self.begin = int(places[-1]) + 1
        return resample_poly(self.samples[places], rate, RATE)

    def link(self, piece: tuple[Path, float], path: Path | str) -> None:
        """Put a piece, (path, seconds), at a place of the corpus; the same file under another name."""
        try:
            os.link(piece[0], path)
        except FileNotFoundError:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            os.link(piece[0], path)
        self.files, self.seconds = self.files + 1, self.seconds + piece[1]

    def write(self, path: Path | str, lines: Iterable[str]) -> None:
        with atomic_write(self.folder / path) as stream:
            stream.writelines(f"{line}\n" for line in lines)


def lay_out_mucs(corpus: Corpus) -> None:
    """<Language>/{train,test}/audio/*.wav and transcription.txt."""
    for language, (script, rate, *sets) in LANGUAGES.items():
        words = make_words(script, corpus.rng)
        for split, (utterances, hours) in zip(("train", "test"), sets, strict=True):
            pieces = corpus.pieces(f"{language}-{split}", 3600 * hours / utterances, rate)
            lines, folder = [], corpus.folder / language / split
            for number in range(corpus.number(utterances)):
                piece, name = pieces[number % len(pieces)], f"{language[:2].lower()}_{split}_{number:06d}"
                corpus.link(piece, folder / "audio" / f"{name}.wav")
                length = max(1, round(CHARACTERS * piece[1] / 6))
                lines.append(f"{name} {' '.join(words[place] for place in corpus.rng.integers(len(words), size=length))}")
            corpus.write(folder / "transcription.txt", lines)


def make_words(script: int, rng: np.random.Generator) -> list[str]:
    """Words of one to four syllables of an Indic script, given by its first character, whose blocks are all alike."""
    assigned = [
        [chr(script + place) for place in range(*span) if unicodedata.name(chr(script + place), "")]
        for span in ((0x15, 0x3A), (0x3E, 0x4D))
    ]  # consonants, vowel signs
    consonants, vowels = assigned[0], ["", *assigned[1]]
    return ["".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(rng.integers(1, 5))) for _ in range(WORDS)]


def lay_out_fearless(corpus: Corpus) -> None:
    """FS02_Challenge_Data/Audio/Streams/<Split>/*.wav and Transcripts/SAD/<Split>/*.txt: of four streams."""
    streams = [make_stream(corpus, number) for number in range(4)]
    root = corpus.folder / "FS02_Challenge_Data"
    for split, full in STREAMS.items():
        for number in range(1, corpus.number(full) + 1):
            path, speech, seconds = streams[number % len(streams)]
            name = f"FS02_{split.lower()}_{number:03d}"
            corpus.link((path, seconds), root / "Audio" / "Streams" / split / f"{name}.wav")
            write_reference(root / "Transcripts" / "SAD" / split / f"{name}.txt", name, speech, seconds)


def make_stream(corpus: Corpus, number: int, rate: int = 8000) -> tuple[Path, np.ndarray, float]:
    """(path, speech [(start, end)] in seconds, seconds) of half an hour of pieces in weak noise."""
    seconds = STREAM_SECONDS * min(1.0, 100 * corpus.scale)  # for tests
    samples = 0.003 * corpus.rng.standard_normal(round(seconds * rate))
    speech, end = [], corpus.rng.uniform(*PAUSES) / 4
    while end + 3.0 < seconds:
        length = min(corpus.rng.uniform(1.0, 10.0), seconds - end - 1.0)
        piece, first = corpus.next_piece(length, rate), round(end * rate)
        samples[first : first + len(piece)] += piece[: len(samples) - first]
        speech.append((first / rate, (first + len(piece)) / rate))
        end = speech[-1][1] + corpus.rng.uniform(*PAUSES)
    path = corpus.folder / ".pieces" / f"{number}.wav"
    write_audio(path, samples, rate)
    return path, np.array(speech), len(samples) / rate


def lay_out_add2022(corpus: Corpus) -> None:
    """ADD_train_dev/{train,dev,label}, track1adp_out, track1_eval."""
    pieces = corpus.pieces("speech", FAKE_SECONDS, 16000)
    places = {
        "train": ("ADD_train_dev/train", "ADD_train_dev/label/train_label.txt"),
        "dev": ("ADD_train_dev/dev", "ADD_train_dev/label/dev_label.txt"),
        "adapt": ("track1adp_out", "track1adp_out/label.txt"),
    }
    for part, (genuine, fake, name) in FAKES.items():
        kinds = ["genuine"] * corpus.number(genuine) + ["fake"] * corpus.number(fake)
        corpus.rng.shuffle(kinds)
        names = _link_all(corpus, pieces, corpus.folder / places[part][0], name, len(kinds))
        corpus.write(places[part][1], [f"{file} {kind}" for file, kind in zip(names, kinds, strict=True)])
    _link_all(corpus, pieces, corpus.folder / "track1_eval", "ADD_E", corpus.number(UNLABELLED))


def _link_all(corpus, pieces, folder, name, number):
    """The names <name>_00000000.wav, ... of so many files in a folder."""
    names = [f"{name}_{place:08d}.wav" for place in range(number)]
    for place, file in enumerate(names):
        corpus.link(pieces[place % len(pieces)], folder / file)
    return names


def lay_out_zerospeech(corpus: Corpus) -> None:
    """english/{train/unit,train/voice,test}/*.wav, bitrate_filelist.txt, synthesis.txt; no phones, so no ABX."""
    utterances, speakers, hours = UNITS
    units = corpus.pieces("unit", 3600 * hours / utterances, 16000)
    english = corpus.folder / "english"
    for number in range(corpus.number(utterances)):
        name = f"S{number % speakers + 1:03d}_{number:010d}"
        corpus.link(units[number % len(units)], english / "train" / "unit" / f"{name}.wav")
    for voice, (utterances, hours) in VOICES.items():
        pieces = corpus.pieces(voice, 3600 * hours / utterances, 16000)
        for number in range(corpus.number(utterances)):
            corpus.link(pieces[number % len(pieces)], english / "train" / "voice" / f"{voice}_{number:010d}.wav")
    pieces, spoken = corpus.pieces("test", 3600 * SPOKEN_HOURS / SPOKEN, 16000), []
    for number in range(corpus.number(SPOKEN)):
        name, piece = f"S{number % SPOKEN_SPEAKERS + 201:03d}_{number:010d}", pieces[number % len(pieces)]
        corpus.link(piece, english / "test" / f"{name}.wav")
        spoken.append((name, piece[1]))
    corpus.write(english / "bitrate_filelist.txt", [f"{name}.txt {seconds:.6f}" for name, seconds in spoken])
    corpus.write(english / "synthesis.txt", [f"{name} {voice}" for name, _ in spoken for voice in VOICES])


LAYOUTS = {"mucs": lay_out_mucs, "fearless": lay_out_fearless, "add2022": lay_out_add2022, "zerospeech": lay_out_zerospeech}
