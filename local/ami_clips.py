"""The AMI clips: 14 stretches of 30 s of real meetings with human speech labels, a second evaluation set (`eval_ami`).

They come with the source distribution of pyannote-audio (MIT; the AMI meeting corpus, CC BY 4.0, Carletta et al.
2005): headset mixes at 16 kHz, here brought to 8 kHz, and RTTM files with the turns of 27 speakers. Speech is the
union of the turns. Meetings are nothing like mission audio: hardly any noise, overlapping talk, 61 % speech, two
clips without a pause. They show whether a detector is of use beyond the radio.

Where the voices of the simulated streams cannot be had (no Debian archive), the speakers of the clips stand in for
them, in the splits of the AMI corpus, and only the two clips of its test split remain for evaluation.
"""

import re
import unicodedata
from pathlib import Path

import numpy as np

from local.sad_manifests import clear_split, write_split
from local.synthesis.voices import load_clip, packages_available
from pyspeech.download import fetch_pypi
from pyspeech.errors import UserError
from pyspeech.files import atomic_path
from pyspeech.sad.formats import write_reference
from pyspeech.sad.segments import clip, complement, union
from pyspeech.unpack import unpack

RATE = 8000
SOURCE = ("pyannote-audio", "pyannote_audio-4.0.7.tar.gz", "3a903dfb5ca711d134cc2522561c9158b186836f5d62e8a57c46c6648e8a8229")
SPLITS = {"trn": "train", "dev": "dev", "tst": "eval"}


def ascii_name(name):
    """A clip's name without accents: trñ00 (a file) and trn00 (in the labels) are the same clip."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", name) if ord(letter) < 128)


def find_clips():
    """{name: path} of the clips, downloaded where they are not in the cache, and their turns {name: [(start, end,
    speaker)]}."""
    folder = unpack(fetch_pypi(*SOURCE), ["*/tests/data/*.wav", "*/tests/data/*.rttm"])
    turns = {}
    for path in sorted(folder.rglob("debug.*.rttm")):
        for name, found in read_rttm(path).items():
            turns.setdefault(ascii_name(name), []).extend(found)
    clips = {ascii_name(path.stem): path for path in folder.rglob("*.wav")}
    clips = {name: path for name, path in sorted(clips.items()) if re.fullmatch(r"(trn|dev|tst)\d\d", name)}
    if not clips or set(clips) != set(turns):
        raise UserError(f"{folder}: clips {sorted(clips)} but labels for {sorted(turns)}; remove the folder and run again")
    return clips, turns


def read_rttm(path):
    """RTTM file -> {recording: [(start, end, speaker)]}, seconds."""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields and fields[0] == "SPEAKER":
            start, duration = float(fields[3]), float(fields[4])
            found.setdefault(fields[1], []).append((start, start + duration, fields[7]))
    return found


def prepare(out):
    """Write audio/eval_ami/*.wav, eval_ami.jsonl.gz and reference/eval_ami/*.txt into `out`; returns {"eval_ami":
    clips}."""
    import soundfile
    from lhotse import Recording

    out = Path(out).resolve()
    clips, turns = find_clips()
    if not packages_available():
        clips = {name: path for name, path in clips.items() if name.startswith("tst")}
    clear_split(out, "eval_ami")
    streams = []
    for name, source in clips.items():
        path = out / "audio" / "eval_ami" / f"ami_{name}.wav"
        samples = np.rint(np.clip(load_clip(source, RATE), -1.0, 1.0) * 32767.0).astype(np.int16)
        with atomic_path(path) as temporary:
            soundfile.write(str(temporary), samples, RATE, subtype="PCM_16")
        recording = Recording.from_file(path, recording_id=path.stem)
        speech = clip(union([(start, end) for start, end, _ in turns[name]]), recording.duration)
        write_reference(out / "reference" / "eval_ami" / f"{path.stem}.txt", path.stem, speech, recording.duration)
        streams.append((recording, speech, None))
    write_split(out, "eval_ami", streams)
    return {"eval_ami": len(streams)}


def single_talker_turns(shortest=0.5, rate=RATE):
    """Stretches in which one person talks alone: {split: {speaker: (sex, [wav paths])}}, `rate` Hz, cut into the cache.

    The stand-in for local.synthesis.voices.mini_voices: 27 people but only a few minutes.
    """
    import soundfile

    clips, turns = find_clips()
    people = {split: {} for split in SPLITS.values()}
    for name, source in clips.items():
        folder = source.parents[2] / ("turns" if rate == RATE else f"turns{rate}")
        folder.mkdir(exist_ok=True)
        samples = load_clip(source, rate)
        for number, (start, end, speaker) in enumerate(sorted(turns[name])):
            others = union([(a, b) for a, b, who in turns[name] if who != speaker])
            alone = clip(complement(others, len(samples) / rate), end)
            for piece, (first, last) in enumerate(np.maximum(alone, start)):
                if last - first >= shortest:
                    path = folder / f"{name}-{number:03d}-{piece}.wav"
                    with atomic_path(path) as temporary:
                        part = samples[int(first * rate) : int(last * rate)]
                        soundfile.write(str(temporary), part, rate, subtype="PCM_16")
                    sex = "f" if speaker.startswith("F") else "m"
                    people[SPLITS[name[:3]]].setdefault(speaker, (sex, []))[1].append(path)
    return people
