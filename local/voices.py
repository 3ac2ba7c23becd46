"""Real human voices that come in packages, as one list of clips per voice; no audio is kept in the repository.

    asterisk-core-sounds-*   telephone prompts, one voice a language, 8 kHz WAV
    tuxpaint-stamps-default  short descriptions, one voice a language, 44.1 kHz Ogg Vorbis
    fillets-ng-data-{cs,nl}  dialogues of a game, two main voices a language, 22.05 kHz Ogg Vorbis
    asterisk-core-sounds-*   the same prompts of the same voices (studio-*) in G.722, up to 7 kHz and hardly any noise
    asterisk-prompt-*        telephone prompts of other people, 8 kHz, WAV or GSM
    festvox-ru               sentences that a man reads for a synthesiser, 16 kHz WAV
    gcin-voice               syllables of Mandarin by two people, 44.1 kHz Ogg Vorbis
    klettres, ktuberling     letters, syllables and words of children's games, one home recording a language, mostly 44.1 kHz
    pyannote-audio           the AMI clips (local/fearless/ami_clips.py): turns of 27 people in meetings, 16 kHz WAV

Every name below is one voice, told from the others by speaker embeddings; but the English and the Spanish prompts name
the same speaker, so these two must stay in one split.
"""

import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from local.synthesis.vocoders import resample
from pyspeech.errors import UserError
from pyspeech.fetch.download import DebianPackage, debian_available, fetch_debian, fetch_pypi
from pyspeech.fetch.unpack import unpack
from pyspeech.files import atomic_path
from pyspeech.sad.segments import clip, complement, union


def debian_packages(source: str, version: str, checksums: Mapping[str, str]) -> dict[str, DebianPackage]:
    """{name: DebianPackage} of packages, for any machine, that one source package gives. checksums: {name: SHA-256}."""
    return {
        name: DebianPackage(name, f"pool/main/{source[0]}/{source}/{name}_{version}_all.deb", sha256)
        for name, sha256 in checksums.items()
    }


PACKAGES = {
    **debian_packages(
        "asterisk-core-sounds",
        "1.6.1-1",
        {
            "asterisk-core-sounds-en-wav": "2be3ea287d83299d143815fa804f11179a75b7affd4a758b98b55f5afc18a35d",
            "asterisk-core-sounds-es-wav": "9283a09a6d56fccdcc2bcfe86c48f0f844289cfbd46a3184d8785a6f7f569903",
            "asterisk-core-sounds-fr-wav": "8d4e1bc32ed5ba7fbda40841ca1825ed20cc6232724a473c90f8bb0e53e6073e",
            "asterisk-core-sounds-it-wav": "5a26638089e134b8ac39363fe249c5c93c50cd8bfdc9b2499ae61ec4a35e2fcb",
            "asterisk-core-sounds-ru-wav": "ccbfaebfa450b7a9ddf644ae0f3d1e9017d5df7c0aebe816e946345589d38201",
            "asterisk-core-sounds-en-g722": "38c5261820b406dcb0ecb37675720da2b0864850690690352ca52707eb623806",
            "asterisk-core-sounds-es-g722": "e4e3b4281057d3b81b779298fd6be705f57411513955c518eed1bcaabbd615b8",
            "asterisk-core-sounds-fr-g722": "7add61d5e42279ecff1bbdf842a5a946ac3644fac9a0fe44384731aa7270c8e0",
            "asterisk-core-sounds-it-g722": "46b4cf7afc508a5fcfc051b7ea233251c0d195dd4ef83cc4b7facb4c6429b016",
            "asterisk-core-sounds-ru-g722": "673b4238a6b8269960f055d868c6a11083f7a0d00979167cb01554046b48ed9b",
        },
    ),
    **debian_packages(
        "tuxpaint-stamps",
        "2022.06.04-1",
        {"tuxpaint-stamps-default": "6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34"},
    ),
    **debian_packages(
        "fillets-ng-data",
        "1.0.1-1.1",
        {
            "fillets-ng-data-cs": "3ecef99b9456f1c80c9625c6f2418642b52d58e7167a46bad7a412db17991b14",
            "fillets-ng-data-nl": "afb4443fda9ab507dee578b75be857d121718a1cd6017a474f30e0eb13dc9d10",
        },
    ),
    **debian_packages(
        "codec2", "1.0.5-1", {"codec2-examples": "7af8cd128f269a1d8116993c9d2bd7d4d452fc17da46a09899aaca2b9bd993d4"}
    ),
    **debian_packages(
        "asterisk-prompt-it",
        "1.4.22+mm20110907-3.1",
        {"asterisk-prompt-it-menardi-wav": "3094530d98f8758ac275572d59624c41f60969fef883f34f4886d144f3dfeb21"},
    ),
    **debian_packages(
        "asterisk-prompt-fr-armelle",
        "20070613-2.2",
        {"asterisk-prompt-fr-armelle": "162570b1a9b3512a98f06b89f60c7c17cf1b9b52297315adca9a4e5be728bea3"},
    ),
    **debian_packages(
        "asterisk-prompt-es-co",
        "0.20070403-2.1",
        {"asterisk-prompt-es-co": "6702696e045514699e87dc8fb70f370717e5df91f821f7bec8dd0df1be008e83"},
    ),
    **debian_packages(
        "festvox-ru", "0.5+dfsg-6", {"festvox-ru": "21ef3f0f2978ecf2e2eddb367cb0ff4a72572196d28dc69feb84f4177af5e6c4"}
    ),
    **debian_packages(
        "gcin-voice", "0~20170223-3", {"gcin-voice": "6a0353f0294d06f7bd901bada3d5d9eec63b66c2ec029f92da3124d93d45de70"}
    ),
    **debian_packages(
        "klettres", "22.12.3-1", {"klettres-data": "1186d257a19e84230856baea0b0b1ded8be9195080fcdb2588970b5cd937f5a8"}
    ),
    **debian_packages(
        "ktuberling", "22.12.3-1", {"ktuberling-data": "fba44c875bfa31ea488dadd9263e87a4dcaea0bd47d28817f6c0dc6d2af970ed"}
    ),
}
MUSIC_ON_HOLD = debian_packages(
    "asterisk-moh-opsound",
    "2.03-1.1",
    {"asterisk-moh-opsound-wav": "8f9d808a729d305c2d3343993f21ca5e6829e411682618dc8ea7aa8bc24a566c"},
)["asterisk-moh-opsound-wav"]
FILLETS_DATA = debian_packages(
    "fillets-ng-data", "1.0.1-1.1", {"fillets-ng-data": "25de89afd8b1adf7bcace8290248a6a22c89cd42300317e69000e162c032cf84"}
)["fillets-ng-data"]
SOUNDS = {
    **debian_packages(
        "sonic-pi", "3.2.2~repack-8", {"sonic-pi-samples": "25f2312d2fae005e6ad0f4726b8ed3084e776006a5a132083506e960224ac79d"}
    ),
    **debian_packages(
        "lomiri-sounds", "22.02-1", {"lomiri-sounds": "d4a8fd0247e43e784ad75c11312d1f0e08a0ced6a4cfaadde3dcf118ab4e9abf"}
    ),
    **debian_packages(
        "colobot", "0.2.0-2", {"colobot-common-sounds": "819e799542eac69c95b072567b5584eb3e0b2bb900de13efa3684915747b1644"}
    ),
    **debian_packages(
        "singularity-music", "007-2", {"singularity-music": "139ba1e408eeb0a72f1fff3760ca46558b9f81bed97dc8c0efa108c4007f4845"}
    ),
}
AMI_CLIPS = (
    "pyannote-audio",
    "pyannote_audio-4.0.7.tar.gz",
    "3a903dfb5ca711d134cc2522561c9158b186836f5d62e8a57c46c6648e8a8229",
)
AMI_SPLITS = {"trn": "train", "dev": "dev", "tst": "eval"}

# voice -> (package, pattern of its clips, sex as heard from the fundamental frequency)
VOICES = {
    **{
        f"{name}-{language}": (
            f"asterisk-core-sounds-{language}-{suffix}",
            f"usr/share/asterisk/sounds/{language}_*/*.{suffix}",
            sex,
        )
        for name, suffix in (("asterisk", "wav"), ("studio", "g722"))
        for language, sex in (("en", "f"), ("es", "f"), ("fr", "f"), ("it", "m"), ("ru", "f"))
    },
    **{
        f"tuxpaint-{language}": ("tuxpaint-stamps-default", f"usr/share/tuxpaint/stamps/*_desc_{language}.ogg", sex)
        for language, sex in (
            ("ro", "f"),
            ("es", "f"),
            ("ru", "m"),
            ("fr", "m"),
            ("bg", "m"),
            ("el", "f"),
            ("be", "f"),
            ("ca", "m"),
            ("da", "m"),
        )
    },
    **{
        f"fillets-{language}-{size}": (
            f"fillets-ng-data-{language}",
            f"usr/share/games/fillets-ng/sound/*/{language}/*-{letter}-*.ogg",
            sex,
        )
        for language in ("cs", "nl")
        for size, letter, sex in (("small", "m", "f"), ("big", "v", "m"))
    },
    "menardi-it": ("asterisk-prompt-it-menardi-wav", "usr/share/asterisk/sounds/it_IT_f_Menardi/*.wav", "f"),
    "armelle-fr": ("asterisk-prompt-fr-armelle", "usr/share/asterisk/sounds/fr/*.gsm", "f"),
    "avatar-es": ("asterisk-prompt-es-co", "usr/share/asterisk/sounds/es/*.gsm", "f"),
    "festvox-ru": ("festvox-ru", "usr/share/festival/voices/russian/msu_ru_nsh_clunits/wav/*.wav", "m"),
    "gcin-3": ("gcin-voice", "usr/share/gcin-voice/ogg/*/3.ogg", "m"),
    "gcin-5": ("gcin-voice", "usr/share/gcin-voice/ogg/*/5.ogg", "f"),
    **{
        f"klettres-{language}": ("klettres-data", f"usr/share/klettres/{language}/*.ogg", "f" if language in women else "m")
        for women in (["ar", "cs", "en_GB", "es", "he", "it", "nb", "nl", "pt_BR", "ru", "tn", "uk", "lt"],)
        for language in "ar cs da de en en_GB es fr he hu it lt ml nb nds nl pt_BR ru tn uk".split()
    },
    **{
        f"ktuberling-{language}": (
            "ktuberling-data",
            f"usr/share/ktuberling/sounds/{language}/*.{suffix}",
            "f" if language in women else "m",
        )
        for women in (["ca", "en", "fr", "ru", "sl", "uk"],)
        for languages, suffix in (("ca da de el en lt ru sl uk wa", "ogg"), ("fr", "wav"))
        for language in languages.split()
    },
}
LONGEST = 12.0  # seconds, of a clip with a text
SHORTEST = 0.4
SHORTEST_TURN = 0.5  # seconds
PACE = (0.5, 1.8)  # characters per second, of the voice's median
NO_SPEECH = ("silence", "beep", "ascending", "descending", "confbridge-join", "confbridge-leave")


def fetch_clips(voices: Iterable[str]) -> dict[str, tuple[Path, list[Path]]]:
    """{voice: (folder of its package, sorted paths of its clips)}, downloaded where they are not in the cache."""
    wanted = sorted({VOICES[voice][0] for voice in voices})
    archives = fetch_debian([PACKAGES[name] for name in wanted])
    folders = {
        name: unpack(archives[name], [pattern for package, pattern, _ in VOICES.values() if package == name]) for name in wanted
    }
    return {voice: (folders[VOICES[voice][0]], find_clips(folders[VOICES[voice][0]], voice)) for voice in voices}


def find_clips(folder: Path, voice: str) -> list[Path]:
    """Sorted paths of the clips of `voice` in `folder`, into which its package was unpacked."""
    pattern = VOICES[voice][1]
    found = [
        path
        for path in matching(folder, pattern)
        if not any(part.startswith(NO_SPEECH) for part in path.relative_to(folder).parts)
    ]
    return [decode_g722(path) if path.suffix == ".g722" else path for path in found]


def matching(folder: Path, pattern: str) -> list[Path]:
    """Sorted paths of the files below `folder` whose names from there on match `pattern` (fnmatch)."""
    return sorted(
        path
        for path in folder.rglob(pattern.rsplit("/", 1)[-1])
        if fnmatch.fnmatch(path.relative_to(folder).as_posix(), pattern) and path.is_file()
    )


def decode_g722(path: Path) -> Path:
    """Decode G.722 (64 kbit/s, no header) to 16 kHz beside it, unless it has been: the path, X.g722.wav."""
    import soundfile

    decoded = path.with_name(f"{path.name}.wav")
    if not decoded.exists():
        import av

        decoder = av.CodecContext.create("g722", "r")
        decoder.sample_rate, decoder.layout = 16000, "mono"  # pyright: ignore[reportAttributeAccessIssue]
        frames = decoder.decode(av.Packet(path.read_bytes()))  # pyright: ignore[reportAttributeAccessIssue]
        samples = np.concatenate([frame.to_ndarray()[0] for frame in frames] or [np.zeros(0, np.int16)])
        with atomic_path(decoded) as temporary:
            soundfile.write(str(temporary), samples, 16000, subtype="PCM_16", format="WAV")
    return decoded


def packages_available() -> bool:
    """Return True where the Debian packages can be had: from the cache, from $PYSPEECH_DEBIAN_MIRROR or with apt."""
    return debian_available(PACKAGES.values())


def load_clip(path: Path | str, sampling_rate: int = 8000) -> np.ndarray:
    """Read a clip as float64 (N,), channels mixed, resampled to `sampling_rate` with a polyphase filter."""
    import soundfile

    samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
    return resample(samples.mean(axis=1), rate, sampling_rate)


# Texts


def usable_clips(clips: Iterable[tuple[Path, str]], language: str) -> list[tuple[Path, str]]:
    """The usable ones of a voice's [(path, text)], their texts as they are said.

    Left out are clips whose text `spoken_text` does not know, under 0.4 s, over 12 s, and of another pace than the voice's
    median, as their recordings stop early or say something else.
    """
    import soundfile

    found = []
    for path, text in clips:
        text = spoken_text(text, language)
        seconds = soundfile.info(str(path)).duration
        if text and SHORTEST <= seconds <= LONGEST:
            found.append((path, text, len(text) / seconds))
    pace = np.median([one[2] for one in found]) if found else 0.0
    return [(path, text) for path, text, own in found if PACE[0] * pace <= own <= PACE[1] * pace]


def spoken_text(text: str, language: str) -> str | None:
    """The text as it is said, or None where that is not known: with digits, signs or addresses, of sounds, not of words.

    An Italian "?" is mostly what an accented letter became. Spanish loses the acute accents and the diaeresis, and n its
    tilde, as some of its texts have none.
    """
    text = unicodedata.normalize("NFC", text).strip()
    if not text or re.search(r"[\d$€£%&@#*/\\<>()\[\]_=+]|\w\.\w", text) or language == "it" and "?" in text:
        return None
    if language == "es":
        text = unicodedata.normalize("NFC", re.sub("[\u0301\u0303\u0308]", "", unicodedata.normalize("NFD", text)))
    return text if any(letter.isalpha() for letter in text) else None


# The AMI clips


def fetch_ami() -> tuple[dict[str, Path], dict[str, list[tuple[float, float, str]]]]:
    """{name: path} of the clips, downloaded where they are not in the cache, and their turns {name: [(start, end,
    speaker)]}."""
    folder = unpack(fetch_pypi(*AMI_CLIPS), ["*/tests/data/*.wav", "*/tests/data/*.rttm"])
    turns = {}
    for path in sorted(folder.rglob("debug.*.rttm")):
        for name, found in read_rttm(path).items():
            turns.setdefault(ascii_name(name), []).extend(found)
    clips = {ascii_name(path.stem): path for path in folder.rglob("*.wav")}
    clips = {name: path for name, path in sorted(clips.items()) if re.fullmatch(r"(trn|dev|tst)\d\d", name)}
    if not clips or set(clips) != set(turns):
        raise UserError(f"{folder}: clips {sorted(clips)} but labels for {sorted(turns)}; remove the folder and run again")
    return clips, turns


def ascii_name(name: str) -> str:
    """A clip's name without accents: trñ00 (a file) and trn00 (in the labels) are the same clip."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", name) if ord(letter) < 128)


def read_rttm(path: Path | str) -> dict[str, list[tuple[float, float, str]]]:
    """RTTM file -> {recording: [(start, end, speaker)]}, seconds."""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields and fields[0] == "SPEAKER":
            start, duration = float(fields[3]), float(fields[4])
            found.setdefault(fields[1], []).append((start, start + duration, fields[7]))
    return found


def single_talker_turns(rate: int = 8000) -> dict[str, dict[str, tuple[str, list[Path]]]]:
    """Stretches in which one person talks alone: {split: {speaker: (sex, [wav paths])}}, `rate` Hz, cut into the cache.

    The stand-in for the packages' voices where they cannot be had: 27 people but only a few minutes.
    """
    import soundfile

    clips, turns = fetch_ami()
    people = {split: {} for split in AMI_SPLITS.values()}
    for name, source in clips.items():
        folder = source.parents[2] / ("turns" if rate == 8000 else f"turns{rate}")
        folder.mkdir(exist_ok=True)
        samples = load_clip(source, rate)
        for number, (start, end, speaker) in enumerate(sorted(turns[name])):
            others = union([(a, b) for a, b, who in turns[name] if who != speaker])
            alone = clip(complement(others, len(samples) / rate), end)
            for piece, (first, last) in enumerate(np.maximum(alone, start)):
                if last - first >= SHORTEST_TURN:
                    path = folder / f"{name}-{number:03d}-{piece}.wav"
                    with atomic_path(path) as temporary:
                        part = samples[int(first * rate) : int(last * rate)]
                        soundfile.write(str(temporary), part, rate, subtype="PCM_16")
                    sex = "f" if speaker.startswith("F") else "m"
                    people[AMI_SPLITS[name[:3]]].setdefault(speaker, (sex, []))[1].append(path)
    return people
