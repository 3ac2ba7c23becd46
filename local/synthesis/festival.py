"""Synthetic speech in eight languages by Festival 2.5 and its voices, packages of Debian 12 on x86-64 (Festival: MIT-like).

Voices that join diphones (linear prediction, its residual excites) and two of statistical parametric synthesis with hidden
Markov models (HTS). The packages are unpacked into the cache and put together there as links, in the folders where Festival
looks for them; nothing is installed. Needed of the machine: its C and C++ libraries, glibc 2.34 or newer.

`synthesize` runs one Festival for each voice, which speaks all texts of it. The same texts give the same samples, whatever is
spoken before them.

nsk-hi, nsk-te and nsk-mr are one man, his diphones one recording: rules of their own for Hindi, Telugu and Marathi. slt is
the woman of Flite's slt; kal the man of Flite's kal16.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.fetch.download import DebianPackage


@dataclass(frozen=True)
class Voice:
    """language as ISO 639-1 has it; sex "f" or "m"; Festival's own name; Debian packages; encoding of what it reads."""

    language: str
    sex: str
    name: str
    packages: tuple
    encoding: str = "ascii"


_ENGLISH, _ITALIAN = ("festlex-cmu", "festlex-poslex"), ("festlex-ifd",)
_FINNISH, _CZECH = ("festvox-suopuhe-common",), ("festival-czech",)
VOICES = {
    # free, MIT-like
    "kal": Voice("en", "m", "kal_diphone", ("festvox-kallpc16k", *_ENGLISH)),
    "ked": Voice("en", "m", "ked_diphone", ("festvox-kdlpc16k", *_ENGLISH)),
    "slt": Voice("en", "f", "cmu_us_slt_arctic_hts", ("festvox-us-slt-hts", *_ENGLISH)),
    # GPL 2 or later
    "lp": Voice("it", "f", "lp_diphone", ("festvox-italp16k", *_ITALIAN), "iso-8859-1"),
    "pc": Voice("it", "m", "pc_diphone", ("festvox-itapc16k", *_ITALIAN), "iso-8859-1"),
    "nsk-hi": Voice("hi", "m", "hindi_NSK_diphone", ("festvox-hi-nsk", "festival-hi"), "utf-8"),
    "nsk-te": Voice("te", "m", "telugu_NSK_diphone", ("festvox-te-nsk", "festival-te"), "utf-8"),
    "nsk-mr": Voice("mr", "m", "marathi_NSK_diphone", ("festvox-mr-nsk", "festival-mr"), "utf-8"),
    "ph": Voice("cs", "m", "czech_ph", ("festvox-czech-ph", *_CZECH), "iso-8859-2"),
    # GPL 3 or later; their rules GPL 2 or later
    "machac": Voice("cs", "m", "czech_machac", ("festvox-czech-machac", *_CZECH), "iso-8859-2"),
    "dita": Voice("cs", "f", "czech_dita", ("festvox-czech-dita", *_CZECH), "iso-8859-2"),
    "krb": Voice("cs", "m", "czech_krb", ("festvox-czech-krb", *_CZECH), "iso-8859-2"),  # a boy
    # LGPL 2 or later; ona 2.1 or later
    "lj": Voice("fi", "f", "suo_fi_lj_diphone", ("festvox-suopuhe-lj", *_FINNISH), "iso-8859-1"),
    "mv": Voice("fi", "m", "hy_fi_mv_diphone", ("festvox-suopuhe-mv", *_FINNISH), "iso-8859-1"),
    "ona": Voice("ca", "f", "upc_ca_ona_hts", ("festvox-ca-ona-hts", "festival-ca"), "iso-8859-15"),
}
PARAMETRIC = ("slt", "ona")
DIPHONES = tuple(name for name in VOICES if name not in PARAMETRIC)

# package: (its source package, version, SHA-256)
_PROGRAM = {
    "festival": ("festival", "2.5.0-9", "d635d3aebabb5e4bf4d2f1f1bb65a0de4ca1b4ffd8e52bd473b17d3e235e88a7"),
    "libasound2": ("alsa-lib", "1.2.8-1+b1", "44c77b076a7b11ae99712439022d822245b1994c435da564ebd320bb676faf4c"),
    "libasyncns0": ("libasyncns", "0.8-6+b3", "cadaff99f4178b1f580331045621b363abaaefc994e78eecba1857774a3cead2"),
    "libbsd0": ("libbsd", "0.11.7-2", "bb31cc8b40f962a85b2cec970f7f79cc704a1ae4bad24257a822055404b2c60b"),
    "libcap2": ("libcap2", "2.66-4+deb12u3+b1", "8d684c673e7483802a5c447834b0df6fce006eb3a7109e1be412f5ad425bb24f"),
    "libdbus-1-3": ("dbus", "1.14.10-1~deb12u1", "18ee0ce5fab9f7b671e87da1e9fa18660e36e04a3402f24bdb8635e0ba1d35f6"),
    "libestools2.5": ("speech-tools", "2.5.0-13", "c5d7a7ea3f17c5779b7f47b40ba622d5f6a22242b05a20f746e05f0b07a883fb"),
    "libflac12": ("flac", "1.4.2+ds-2", "4d8431c274eef13ec9ee2c0bf988c34b4342367dec053b7f69a432525be5b1fe"),
    "libgcrypt20": ("libgcrypt20", "1.10.1-3+deb12u1", "e7a56552139c693904a6f9712234c05fe918353273a7cbdb5e62f423ad71bb97"),
    "libgomp1": ("gcc-12", "12.2.0-14+deb12u1", "48fec46bda7f5b1638b9e959889bfbc20491247d402d120bb152687eb48143d7"),
    "libgpg-error0": ("libgpg-error", "1.46-1", "89944ee11d7370ce6ef46fc52f094c4a6512eff8943ec4c6ebefeae6360ceada"),
    "liblz4-1": ("lz4", "1.9.4-1", "64cde86cef1deaf828bd60297839b59710b5cd8dc50efd4f12643caaee9389d3"),
    "liblzma5": ("xz-utils", "5.4.1-1+deb12u2", "3d8c29c8c21ec6007635e1b2591edf98b771c9572a085968f47452b33040f384"),
    "libmd0": ("libmd", "1.0.4-2", "03539fd30c509e27101d13a56e52eda9062bdf1aefe337c07ab56def25a13eab"),
    "libmp3lame0": ("lame", "3.100-6", "b1292c749172e7623547ecf684da57d3ec6ca22109f08b11bbb9e6be6e6beb95"),
    "libmpg123-0": ("mpg123", "1.31.2-1+deb12u1", "a10ad0d59995b859797a5f20d2833672051d0b2c7dab4c71f2e79258b2e3f631"),
    "libogg0": ("libogg", "1.3.5-3", "f67acb0477aed0354f411172e37af338f3ac6bd4f3766134a2cf5539884b5a28"),
    "libopus0": ("opus", "1.3.1-3", "c172e212f9039e741916aa8e12f3670d1e049dc0c16685325641288c2d83faa7"),
    "libpulse0": ("pulseaudio", "16.1+dfsg1-2+b1", "7b2c5403cb726312219aad678becc6d6adcee1d8694fdffce0b6ec15ae010831"),
    "libsndfile1": ("libsndfile", "1.2.0-1+deb12u1", "02dc3f08fe8476e82e005f412e3b7289ff641180f33a9be8073f4bde61c85e8e"),
    "libsystemd0": ("systemd", "252.39-1~deb12u2", "013c07514a9e4933b2d5c098018695a6aa42d085dbc483ce2c094a954c8a1b0a"),
    "libtinfo6": ("ncurses", "6.4-4", "072d908f38f51090ca28ca5afa3b46b2957dc61fe35094c0b851426859a49a51"),
    "libvorbis0a": ("libvorbis", "1.3.7-1", "01c14f9d1109650077a4c5c337c285476a6932d4d448f5a190c2b845724dbf21"),
    "libvorbisenc2": ("libvorbis", "1.3.7-1", "75dd4d6f904c7db82f5112e60d8efea9e81dfedf94e970c5da7af2b3d81643c0"),
    "libx11-6": ("libx11", "1.8.4-2+deb12u2", "d88c973e79fd9b65838d77624142952757e47a6eb1a58602acf0911cf35989f4"),
    "libx11-xcb1": ("libx11", "1.8.4-2+deb12u2", "f5da45e1d881a793250a96613f28c471a248877f1a0f18a5c90e2a620a76c898"),
    "libxau6": ("libxau", "1.0.9-1", "679db1c4579ec7c61079adeaae8528adeb2e4bf5465baa6c56233b995d714750"),
    "libxcb1": ("libxcb", "1.15-1", "fdc61332a3892168f3cc9cfa1fe9cf11a91dc3e0acacbc47cbc50ebaa234cc71"),
    "libxdmcp6": ("libxdmcp", "1.1.2-3", "ecb8536f5fb34543b55bb9dc5f5b14c9dbb4150a7bddb3f2287b7cab6e9d25ef"),
    "libzstd1": ("libzstd", "1.5.4+dfsg2-5", "6315b5ac38b724a710fb96bf1042019398cb656718b1522279a5185ed39318fa"),
}
_DATA = {
    "festival-ca": ("festival-ca", "3.0.6-2", "2d0ab95a6de78a77a26ee1bd6ccf3feeffa54e3222013325c2cd1ebb9a4cb691"),
    "festival-czech": ("festival-czech", "0.3-6", "bb1c3763de06b2b744aaa48d78537eaf3f10f2af9a92691479b4f8f2142da7d0"),
    "festival-hi": ("festival-hi", "0.1-11", "27c569572a05fb5e97438aeb0a54b17523d97cd0a73ad7cdbd7d6d319e4c4a94"),
    "festival-mr": ("festival-mr", "0.1-11", "891943fd17df745cc55b1b7d9f3f8bbd704d3e7124dfb405d0b8bd27682336ac"),
    "festival-te": ("festival-te", "0.3.3-6", "13a3a6a489e32d8c0acf9ecf02ce95c2c9956260d105bd1ba7e86b81f9b32de3"),
    "festlex-cmu": ("festlex-cmu", "2.4-2", "9c4ca30881e987998abd51bed538e08d960aa08e8f003461c8c246da97235bbb"),
    "festlex-ifd": ("festival-it", "2.0+debian0-6", "8f98f36c50fab70ee073d1e07d8e7444f003712d5d5222f6d83516e825f36d7a"),
    "festlex-poslex": ("festlex-poslex", "2.4-1", "bb0b51d8f99ee829ce43f4aa0983d5b63d50225dcbdd24a9b14d18e24fddc684"),
    "festvox-ca-ona-hts": ("festvox-ca-ona-hts", "1.3-3", "bae67d675e3d638c3c9e28a81c3556d0b79d964514b40daadce6c5d81cbb9877"),
    "festvox-czech-dita": ("festvox-czech-dita", "1.0.0-5", "f4dc1c03c8815beeeeed8c8cc18c9c26f381ad0eadb10727ff5f850826e51cf0"),
    "festvox-czech-krb": ("festvox-czech-krb", "1.0.0-5", "802a6e647417437643de1ede07b54aeebdc4b180f01844a1b29480f7239fe784"),
    "festvox-czech-machac": (
        "festvox-czech-machac",
        "1.0.0-5",
        "76270a4526ed8222a840d272d32124854b242ccdcc4422d446f6a1f06576bb0f",
    ),
    "festvox-czech-ph": ("festvox-czech-ph", "0.1-6", "0e7833a7f670fdac3c3ee5664ab6ce4af9161c43904b745289eae33fba7a4edf"),
    "festvox-hi-nsk": ("festival-hi", "0.1-11", "7d3d822f115fb318e3264cbbe769bfed477150a5f7afa82c80760de92793be55"),
    "festvox-italp16k": ("festival-it", "2.0+debian0-6", "4acbcabf7e81cf284e1f7db9135d7761e44c6bb3f9dda85727291fe95942f525"),
    "festvox-itapc16k": ("festival-it", "2.0+debian0-6", "832c8c4cede93ef292132f8a7b5d6cddaad0046e348517d8445b4a4a906f09e6"),
    "festvox-kallpc16k": ("festvox-kallpc16k", "2.4-1", "bb21a90974a2754044c6dc11e4cf958aa8ba91ddb312e20ea7a114f3b73dadae"),
    "festvox-kdlpc16k": ("festvox-kdlpc16k", "1.4.0-6.1", "3c359e51b6c85d5f5e00368804c52a68f551b1961ee03a79dde5245bc1accb6c"),
    "festvox-mr-nsk": ("festival-mr", "0.1-11", "2e686ab0ef1cb5e273aa9f81751266a29e897a9533df4dc91882abc9c0495ab1"),
    "festvox-suopuhe-common": (
        "festvox-suopuhe-lj",
        "1.0g-20051204-5",
        "10176ea1b6f7bac4e7716d98fcdf2279219d29fdc56f65bc807431a0580f0a01",
    ),
    "festvox-suopuhe-lj": (
        "festvox-suopuhe-lj",
        "1.0g-20051204-5",
        "4ea3d165b7ac737c114e02397a442c58a86cb5c78c5ab4e68c49785ca3b1c52d",
    ),
    "festvox-suopuhe-mv": (
        "festvox-suopuhe-mv",
        "20041119-3",
        "9d58130e6554d371944e62dc67e3e250c107924e92f0c9cecdf287dbca8a7e68",
    ),
    "festvox-te-nsk": ("festival-te", "0.3.3-6", "d52ff0038abf134d648046e3479f78e548728621c39649e615c48a8ae41b44b8"),
    "festvox-us-slt-hts": (
        "festvox-us-slt-hts",
        "0.2010.10.25-4",
        "b9ac83795572e717c4595d7dac428336490eeba6801f6e607009a305b4b7da58",
    ),
}
_PATTERNS = ["usr/share/festival/*", "usr/bin/festival", "*lib/x86_64-linux-gnu/*.so*"]
_LINKS = {  # in the packages, which `unpack` leaves out
    "suo_fi_lj_diphone/festvox": "../suopuhe.common",
    "hy_fi_mv_diphone/festvox": "../suopuhe.common",
    "suopuhe.common/suo_fi_lj_diphone.scm": "hy_fi_mv_diphone.scm",
}
_ASCII = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "–": "-", "—": " - ", "…": "..."})


def packages(voices: Iterable[str] = tuple(VOICES)) -> list[DebianPackage]:
    """The Debian packages of these voices, of Festival, and of the libraries that it is linked with (those for sound)."""
    from pyspeech.fetch.download import DebianPackage

    wanted = {name for voice in voices for name in VOICES[voice].packages}
    found = []
    for table, machine in ((_PROGRAM, "amd64"), (_DATA, "all")):
        for name, (source, version, sha256) in table.items():
            folder = source[:4] if source.startswith("lib") else source[0]
            if table is _PROGRAM or name in wanted:
                found.append(DebianPackage(name, f"pool/main/{folder}/{source}/{name}_{version}_{machine}.deb", sha256))
    return found


def installation(voices: Iterable[str] = tuple(VOICES)) -> dict[str, str]:
    """{name: path} of Festival's program, libraries and data with these voices (all: 96 MB), downloaded into the cache where
    they are not there. UserError where the packages cannot be had, and on machines that they are not for."""
    import platform
    import sys

    from pyspeech.fetch.download import cache_dir, fetch_debian
    from pyspeech.fetch.unpack import made_once, unpack

    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise UserError(
            f"Festival comes as packages for Linux on x86_64; this machine is {sys.platform} on {platform.machine()}"
        )
    archives = fetch_debian(packages(voices))
    folders = [unpack(archives[name], _PATTERNS) for name in sorted(archives)]
    digest = hashlib.sha256("\n".join(folder.name for folder in folders).encode()).hexdigest()[:8]

    def put_together(target):
        for folder in folders:
            _put_together(folder, target)

    target = made_once(cache_dir() / "unpacked" / f"festival-{digest}", put_together)
    return {name: str(target / name) for name in ("festival", "lib", "data")}


def _put_together(source, target):
    """Link what `unpack` gave to where Festival looks for it. The program is copied, as it has to be executable."""
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            continue
        name = path.relative_to(source)
        if name.parts[:2] == ("usr", "bin"):
            shutil.copyfile(path, target / "festival")
            (target / "festival").chmod(0o755)
        elif name.parts[:3] == ("usr", "share", "festival"):
            _link(path, target / "data" / name.relative_to("usr/share/festival"))
        else:  # libx.so.1.2.3 is asked for as libx.so.1 or libx.so.1.2
            stem, _, version = name.name.partition(".so")
            parts = version.split(".")
            for count in range(1, len(parts) + 1):
                _link(path, target / "lib" / f"{stem}.so{'.'.join(parts[:count])}")
    for link, to in _LINKS.items():
        link = target / "data/voices/finnish" / link
        if link.parent.is_dir() and not link.is_symlink():
            link.symlink_to(to)


def _link(path, link):
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(path, link.parent))


def synthesize(utterances: Iterable[tuple[str, str]], where: Mapping[str, str] | None = None) -> list[tuple[np.ndarray, int]]:
    """Speak a list of (voice, text): list of (int16 array (N,), sampling rate in Hz).

    where: default `installation()` of the voices wanted. Letters that a voice's encoding lacks lose their accents or are left
    out. UserError in one line where Festival does not run or a text gives no sound, with the reason.
    """
    utterances = list(utterances)
    for voice, _ in utterances:
        if voice not in VOICES:
            raise UserError(f"Festival cannot speak: it has no voice {voice}; expected one of {', '.join(VOICES)}")
    voices = sorted({voice for voice, _ in utterances})
    where = where or (installation(voices) if voices else {})
    found = {}
    for voice in voices:
        places = [place for place, (name, _) in enumerate(utterances) if name == voice]
        found.update(zip(places, _speak(voice, [utterances[place][1] for place in places], where), strict=True))
    return [found[place] for place in range(len(utterances))]


def _speak(voice, texts, where):
    """All texts of a voice, by one Festival."""
    import soundfile

    said, found = [written(text, VOICES[voice].encoding) for text in texts], []
    for text, mine in zip(texts, said, strict=True):
        if not any(letter.isalnum() for letter in mine.decode(VOICES[voice].encoding)):
            raise UserError(
                f"Festival cannot speak the text '{text[:60]}' as {voice}: no letters that the voice knows are in it"
            )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.scm"
        script.write_bytes(_script(VOICES[voice], said, folder, where["data"]))
        environment = {"HOME": folder, "LC_ALL": "C", "LD_LIBRARY_PATH": where["lib"], "OMP_NUM_THREADS": "1"}
        command = [where["festival"], "-q", "--datadir", where["data"], "--libdir", where["data"], "-b", str(script)]
        try:
            child = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, cwd=where["data"], env=environment)
        except OSError as error:
            raise UserError(f"Festival cannot speak: {error.filename}: {error.strerror}") from None
        for number, text in enumerate(texts):
            path = Path(folder) / f"{number}.wav"
            samples, rate = soundfile.read(str(path), dtype="int16") if path.exists() else ((), 0)
            if not len(samples):
                reason = "it has no sound" if path.exists() else _reason(child)
                raise UserError(f"Festival cannot speak the text '{text[:60]}' as {voice}: {reason}")
            found.append((samples, rate))
    return found


def _reason(child):
    """Why Festival ended early, in one line: Scheme's error or that of its library, else the last line, else its status."""
    lines = [line.strip() for line in (child.stdout + child.stderr).decode(errors="replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith("closing a file")]
    told = [line for line in lines if "ERROR" in line or line.startswith("{")]
    return (told or lines or [f"Festival ended with status {child.returncode}"])[-1]


def _script(voice, texts, folder, data):
    """What Festival runs: its start without settings of the machine's or the user's, with one voice; then the texts."""
    language, short = voice.name.split("_")[:2]
    before, after = [], []
    if language == "czech":  # looks for itself only where it would be installed, and draws random numbers
        before.append(f'(set! czech-{short}-unisyn-index "{data}/voices/czech/{voice.name}/group/{short}.group")')
        before.append("(set! czech-randomize nil)")
    elif short == "NSK":  # leaves intonation to the voice before it; a rule for it lies in the package unused
        after.append(f"(set! int_general_params (list (list 'targ_func {language}_NSK_targ_func1)))")
        after.append("(Parameter.set 'Int_Method 'General)")
        after.append("(Parameter.set 'Int_Target_Method 'General)")
    lines = [
        f'(set! sysconfdir "{folder}/")',
        "(set! system-voice-path nil)",
        "(set! system-language-path nil)",
        f"(set! default-voice-priority-list '({voice.name}))",
        *before,
        '(load (path-append datadir "init.scm"))',
        *after,
        "(define (speak text file) (utt.save.wave (utt.synth (eval (list 'Utterance 'Text text))) file 'riff))",
    ]
    said = [b'(speak "%b" "%b/%d.wav")' % (text, os.fsencode(folder), number) for number, text in enumerate(texts)]
    return b"\n".join([*map(os.fsencode, lines), *said, b""])


def written(text: str, encoding: str) -> bytes:
    """A text as the inside of a string of Scheme, in an encoding; letters that it lacks lose their accents or are left out."""
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    if encoding != "utf-8":
        text = text.translate(_ASCII)
    known = b"".join(
        letter.encode(encoding, "ignore") or unicodedata.normalize("NFKD", letter).encode(encoding, "ignore")
        for letter in text
        if letter.isprintable()
    )
    return known.replace(b"\\", b" ").replace(b'"', b'\\"')
