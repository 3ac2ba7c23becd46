"""A small corpus of genuine and fake speech with the shape of ADD 2022, track 1, for egs/add2022 without that corpus.

Genuine are recordings of people that come in packages (local/voices.py). Fakes are made of them, or of descriptions of drawing
stamps in the language of the recording, by the engines of local/synthesis/fake_speech.py. All of it passes the same
recording chain (local/synthesis/recording_chain.py). A fake stands beside a genuine utterance of the same set and has its
voice or language, its length and bandwidth, so that these are alike in both classes. 1.3 to 4 s an utterance, 16 kHz, in
FLAC.

    set     voices (sex)                                              genuine  fake   condition
    train   tuxpaint fr (m), ru (m), ro (f), be (f); fillets cs       1000     2000   clean
            small (f), big (m), nl small (f); festvox ru (m);
            asterisk ru (f), es (f), fr (f)
    dev     tuxpaint es (f); fillets nl big (m); asterisk it (m)       120      240   clean
    adapt   tuxpaint da (m); asterisk en (f)                            80      160   noise, music
    eval    tuxpaint bg (m), el (f), ca (m); AMI en                    200      600   clean, noise, music
            (up to 20 people)

    engine                                              train, dev   adapt   eval
    world, griffin_lim, lpc, espeak, hifigan (neural)       x          x       x
    world_convert, melgan (neural)                                     x       x
    sinusoidal, phase_vocoder, hifigan_lj, kokoro,                             x
    piper (the last three neural)
    flite_kal (diphones), flite_parametric                                     x (English)

A copy is made of the very words of its genuine utterance, in the same room and noise (`original` in the manifests), so that a
batch may have both side by side; a neural vocoder copies each at a pace of its own (vocoders.copy_by). Engines that have much
in common are a `family` (local/add2022/mini_sets.py).

No voice is in two sets; eval has its own voices of eSpeak NG and its own languages (bg, el, ca);
pieces of noise and music are those of local/add2022/backgrounds.py, other ones in adapt than in eval. Recordings of the prompts
(asterisk) reach to 3.4 kHz, and so do their fakes; of the others, in either class, one in seven is cut there too, the
rest at 6.8 to 7.7 kHz; half of all pass a coder. What an engine says without noise gets noise as the recordings of the set
have it. The same seed and scale give the same samples (`digest`) on processors of one kind; on others the neural engines say
the same with other samples. check.json has what a linear model makes of the files alone (local/add2022/shortcuts.py), which
should be next to nothing; read it before trusting any figure. Its equal error rates are 43 % on dev, 50 % on adapt and 43 % on
eval; those of log-mel means and deviations are 36, 52 and 46 %.

Limits, to keep in mind with any figure from this corpus: eleven voices in train, mostly one a language, so what is
learnt of voices and of engines is hard to tell apart; with 200 genuine utterances in eval an error rate of 10 % has an
interval of about 4 points; of the neural engines, three have learnt from a single voice and two have an accent, and
eSpeak NG and Flite are far from human speech; most recordings are not of studio quality (noise floors 20 to 45 dB below the
speech), so subtle traces are masked that the real corpus has, and what a vocoder does to noise is a trace too. The sets
differ in how hard they are: dev has clean recordings, eval has noisy ones as well. A detector that does well here has
been built right; how well it does on ADD 2022 only ADD 2022 tells.
"""

import functools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local import voices
from local.add2022 import mini_sets as sets
from local.add2022.backgrounds import backgrounds
from local.add2022.mini_sets import Item, Sources, plan
from local.add2022.shortcuts import check_corpus
from local.synthesis.fake_speech import copy, find_engines, speak
from local.synthesis.recording_chain import RATE, cut, record
from pyspeech.audio.io import stream_audio
from pyspeech.data.audio_files import digest, write_audio
from pyspeech.data.manifests import Utterance, clear, write_manifest
from pyspeech.engine.parts import Parts, in_parts
from pyspeech.errors import UserError
from pyspeech.fetch.download import fetch_debian
from pyspeech.fetch.unpack import unpack

SEED = 2022
# What eSpeak NG says depends a little on what it has said before: so many in a process, of whatever size the tasks are
SPOKEN_TASK = {"espeak": 40, "flite_kal": 40, "flite_parametric": 40, "kokoro": 1}
# SHA-256 (of `digest`) of the corpora that figures are published for: scale -> digest, with SEED
DIGESTS = {1.0: "b95d7cebaf743adb92ef0b1831d919845a762e409d1d921c593e1c0cafac2e0f"}


def prepare(
    out: str | Path,
    log: logging.Logger,
    *,
    scale: float = 1.0,
    seed: int = SEED,
    jobs: int | None = None,
    sources: Sources | None = None,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Make the corpus in `out`: audio/<set>/*.flac, {train,dev,adapt,eval}.jsonl.gz and check.json.

    scale: share of the utterances, at most 1. jobs: processes, by default the cores of the stage. sources: default
    `find_sources()`, which downloads about 560 MB into the cache once.
    Manifests are written when all audio is there; a stage that was killed goes on with the audio that is missing
    (pyspeech.engine.parts). Returns {set: {"genuine": n, "fake": n}}.
    UserError in one line where a package cannot be had.
    """
    folder = Path(out).resolve()
    if not 0.0 < scale <= 1.0:
        raise UserError(f"scale={scale}; expected more than 0 and at most 1")
    sources = sources or find_sources(log)
    (folder / "check.json").unlink(missing_ok=True)
    items = [item for part in sets.SETS for item in plan(part, scale, seed, sources, jobs, parts)]
    clear(folder, sets.SETS, "audio", keep=[audio_path(folder, item) for item in items])
    log.info("%d utterances of genuine and fake speech", len(items))
    lengths = make_all(items, folder, sources, jobs, log, parts)
    counts = write_manifests(items, lengths, folder, log)
    check_corpus(folder, log, jobs, parts)
    expected = DIGESTS.get(scale) if seed == SEED else None
    if expected and digest(folder.glob("audio/*/*.flac")) != expected:
        log.warning(
            "these are not the very same samples as those of the published figures: a package, the processor, "
            "the C library or the decoder of Ogg Vorbis is another one; figures can differ a little"
        )
    return counts


# The audio


def audio_path(folder: Path, item: Item) -> Path:
    return folder / "audio" / item.part / f"{item.id}.flac"


def make_all(
    items: Sequence[Item], folder: Path, sources: Sources, jobs: int | None, log: logging.Logger, parts: Parts | None = None
) -> dict[str, int]:
    """Write all utterances: {id: number of samples}."""
    # What one engine speaks goes together: each call of theirs is a process. The slowest, Kokoro, comes first.
    kinds = {}
    for item in sorted(items, key=lambda item: item.id):
        kinds.setdefault(item.system if item.texts else "", []).append(item)
    tasks = {}
    for system, some in sorted(kinds.items(), reverse=True):
        size = SPOKEN_TASK.get(system, sets.TASK)
        tasks.update((some[start].id, some[start : start + size]) for start in range(0, len(some), size))

    def make_some(some):
        spoken = speak(some, sources.engines) if some[0].texts else map(_load, (item.clip for item in some))
        return [_write(item, make(item, speech, sources.engines), folder) for item, speech in zip(some, spoken, strict=True)]

    made = in_parts(
        parts, "audio", make_some, tasks, jobs, files=lambda some: [audio_path(folder, item) for item in some], log=log
    )
    return {item.id: length for name, lengths in made.items() for item, length in zip(tasks[name], lengths, strict=True)}


def _write(item, samples, folder):
    """The number of samples of an utterance, once it is written."""
    write_audio(audio_path(folder, item), samples, RATE)
    return len(samples)


@functools.lru_cache(maxsize=2)
def _load(path):
    """A clip at 16 kHz; the fakes made of it come next to it."""
    return voices.load_clip(path, RATE)


def make(item: Item, speech: np.ndarray, engines: Mapping[str, Any]) -> np.ndarray:
    """One utterance of an item: the clip or what an engine has said, (N,) at 16 kHz -> (samples,) int16."""
    rng = np.random.Generator(np.random.PCG64(item.take))
    piece = cut(speech, item.recording.samples, rng)
    if not item.texts and item.system != "-":
        piece = copy(item.system, piece, np.random.Generator(np.random.PCG64([*item.seed, 1])), engines)
    background = _background(item, len(piece)) if item.background else None
    return record(piece, item.recording, rng, background)


def _background(item, length):
    """`length` samples of the item's noise or music from its place on, begun again where it ends."""
    import soundfile

    path, place = item.background
    seconds = soundfile.info(str(path)).duration
    start = place * max(0.0, seconds - length / RATE)  # of a long piece only what is heard is read
    samples = np.concatenate(list(stream_audio(path, RATE, start=start, duration=length / RATE)))
    return np.resize(samples, length)


# Writing


def write_manifests(
    items: Sequence[Item], lengths: Mapping[str, int], folder: Path, log: logging.Logger
) -> dict[str, dict[str, int]]:
    """<set>.jsonl.gz of all sets; returns {set: {"genuine": n, "fake": n}}."""
    counts = {}
    for part in sets.SETS:
        rows = [
            (
                Utterance(
                    item.id,
                    "",
                    "genuine" if item.system == "-" else "fake",
                    item.language,
                    item.speaker,
                    part,
                    {
                        "attack": item.system,
                        "family": sets.FAMILY_OF.get(item.system, "-"),
                        "kind": sets.kind_of(item.system),
                        "condition": item.condition,
                        "original": item.original,
                    },
                ),
                str(audio_path(folder, item)),
                {"rate": RATE, "duration": lengths[item.id] / RATE},
            )
            for item in items
            if item.part == part
        ]
        write_manifest(folder / f"{part}.jsonl.gz", rows)
        counts[part] = {kind: sum(row[0].text == kind for row in rows) for kind in ("genuine", "fake")}
        systems = Counter(row[0].custom["attack"] for row in rows if row[0].text == "fake")  # pyright: ignore[reportOptionalSubscript]
        log.info(
            "%s: %d genuine, %d fake, %.1f min; %s",
            part,
            counts[part]["genuine"],
            counts[part]["fake"],
            sum(row[2]["duration"] for row in rows) / 60.0,
            ", ".join(f"{system} {count}" for system, count in sorted(systems.items())),
        )
    return counts


# Sources


def find_sources(log: logging.Logger) -> Sources:
    """Clips, texts, backgrounds and engines, downloaded where they are not in the cache."""
    clips = find_clips()
    (stamps,) = fetch_debian([voices.PACKAGES["tuxpaint-stamps-default"]]).values()
    languages = sorted({voice.split("-")[1] for voice in clips})
    return Sources(
        clips, stamp_texts(stamps, languages), {part: backgrounds(part) for part in ("adapt", "eval")}, find_engines(log)
    )


def find_clips() -> dict[str, dict[str, list[Path]]]:
    """{voice: {speaker: [paths of clips]}} of the corpus."""
    names = [voice for chosen in sets.SETS.values() for voice in chosen if voice != "ami-en"]
    clips = {voice: {voice: paths} for voice, (_, paths) in voices.fetch_clips(names).items()}
    clips["ami-en"] = {
        f"ami-{speaker}": paths
        for people in voices.single_talker_turns(rate=RATE).values()
        for speaker, (_, paths) in people.items()
    }
    return clips


def stamp_texts(archive: Path, languages: Iterable[str]) -> dict[str, list[str]]:
    """{language: [texts]} of the descriptions in X.txt: English in line 1, others in lines `<language>.utf8=`."""
    found = {language: [] for language in languages}
    for path in sorted(unpack(archive, ["usr/share/tuxpaint/stamps/*.txt"]).rglob("*.txt")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in [f"en.utf8={lines[0]}", *lines[1:]] if lines else ():
            language, _, text = line.partition(".utf8=")
            if language in found and (text := voices.spoken_text(text, language)):
                found[language].append(text)
    return found
