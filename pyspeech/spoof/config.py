"""Options of the detector of fake audio and of its training data, as plain dataclasses; it imports nothing heavy.

The defaults are the paper's (Li et al. 2022, Table 1 and section 3.2) where it names a value. Where it is silent they
are choices: dropout and residual (see DetectorConfig), the floor of the logarithm, that no mean is removed, the hop of
windows.
"""

import math
from dataclasses import dataclass, field, replace

from pyspeech.errors import UserError, folder_or, requirement
from pyspeech.features.config import check_rate
from pyspeech.model_file import Kind
from pyspeech.spoof.registry import FRONT_ENDS, NETWORKS

KIND = Kind("fake audio detector", "add2022", "exp/NAME/models/SYSTEM/SEED")
SHORT = ("zeros", "repeat")
SCALES = ("mel", "linear")
BUNDLES = {  # of torchaudio.pipelines; whether they were trained on normalised waveforms
    "WAV2VEC2_BASE": False,
    "WAV2VEC2_LARGE": False,
    "WAV2VEC2_LARGE_LV60K": True,
    "WAV2VEC2_XLSR53": True,
    "HUBERT_BASE": False,
    "HUBERT_LARGE": True,
    "HUBERT_XLARGE": True,
}


@dataclass
class LogMelConfig:
    """The front end; by default a log-mel spectrogram, centred frames, as torchaudio.transforms.MelSpectrogram computes it."""

    sampling_rate: int = 16000  # Hz; audio of other rates is resampled before
    n_fft: int = 1024  # points of the transform
    window: int = 512  # samples, Hann
    shift: int = 256  # samples from frame to frame
    num_bins: int = 80  # filters, or values of a frame that a self-supervised encoder's are projected to
    scale: str = "mel"  # of the filters; linear: all are as wide, which shows more of the highest frequencies
    floor: float = 1e-6  # added to the energies before the logarithm
    remove_mean: bool = False  # whether each bin's mean over the piece is taken off: level and channel do not count then
    # logmel, linear (log power spectrogram), self_supervised (a pretrained encoder), or another of pyspeech/spoof/registry.py
    front_end: str = "logmel"
    pretrained: str = folder_or(*BUNDLES, what="config.json and weights.pt")  # encoder of front_end=self_supervised
    layer: int = 0  # of the encoder whose output is used, from 1; 0: a weighted sum of all, its weights learnt
    fine_tuned: bool = False  # whether the encoder is trained too, and saved in model files

    def num_frames(self, num_samples: int) -> int:
        return 1 + num_samples // self.shift

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("features", self)
        check_rate(require, self)
        require("n_fft", self.n_fft >= 32, "at least 32")
        require("window", 0 < self.window <= self.n_fft, f"1 to n_fft={self.n_fft}")
        require("shift", 0 < self.shift <= self.window, f"1 to window={self.window}")
        # Four poolings by 2 must leave something.
        require("num_bins", 16 <= self.num_bins <= self.n_fft // 2, f"16 to n_fft/2={self.n_fft // 2}")
        require("scale", self.scale in SCALES, " or ".join(SCALES))
        require("floor", 0 < self.floor < math.inf, "a positive number")
        require("front_end", self.front_end in FRONT_ENDS, f"one of {', '.join(FRONT_ENDS)}")
        rate = FRONT_ENDS[self.front_end].sampling_rate
        require("sampling_rate", rate in (None, self.sampling_rate), f"{rate} with front_end={self.front_end}")
        require("layer", self.layer >= 0, "0 for all, or the number of a layer")


@dataclass
class DetectorConfig:
    """The network; by default the LCNN-BLSTM of Table 1.

    Where the paper is silent: the public code that it builds on has dropout 0.7 and the residual.
    """

    kind: str = "lcnn_blstm"  # the paper's, resnet, or another of pyspeech/spoof/registry.py
    dropout: float = 0.7  # Dropout_28
    residual: bool = False  # whether the BLSTM's input is added to its output; Table 1 does not show it

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("network", self)
        require("kind", self.kind in NETWORKS, f"one of {', '.join(NETWORKS)}")
        require("dropout", 0 <= self.dropout < 1, "0 to less than 1")
        require("residual", self.kind == "lcnn_blstm" or not self.residual, f"false with kind={self.kind}")


@dataclass
class CropConfig:
    """Pieces of fixed length of utterances: random crops in training, windows in detection."""

    samples: int = 64600  # of a piece, 4.04 s: the 253 frames of Table 1
    short: str = "zeros"  # what follows a shorter utterance: zeros, or repeat: itself again
    hop: int = 32300  # samples from window to window of a longer utterance, in detection
    # in detection, utterances up to so many samples are scored whole, longer ones in windows of as many; 0: as in training
    whole: int = 0
    # dB of full scale (RMS) that each piece is scaled to, in training as in detection, such as -26; None: left as it is
    level: float | None = None
    silence: int = 0  # samples: stretches of digital silence that are as long or longer are cut out, such as 800; 0: none
    batch_size: int = 64  # pieces
    balanced: bool = False  # whether training draws both classes equally often, the smaller one repeatedly
    clean_batches: int = 0  # at the beginning, in which nothing is augmented or masked: a short training needs them
    # share of the fakes in training that a made-up vocoder makes of the genuine utterance before them (balanced only)
    resynthesized: float = 0.0
    # engines whose fakes are drawn so many times as often as others, of those made of the same genuine utterance where that is
    # known, such as {A04: 3} (balanced only)
    often: dict[str, float] = field(default_factory=dict)
    # how evenly the pages of a corpus that names them are drawn: 1 each equally often, 0 by their size, between them as
    # size ** (1 - even_pages) (balanced only)
    even_pages: float = 1.0
    pair_loss: float = 0.0  # weight of a loss that ranks each genuine crop above the fake behind it (balanced only)
    speed: int = 0  # percent by which crops in training are played faster or slower at most, so in other voices too
    cache_gigabytes: float = 2.0  # of audio is kept in memory, by all processes that read it

    without_effect = ("cache_gigabytes",)

    def in_windows_of(self, seconds: float, rate: int) -> "CropConfig":
        """The same with windows of so many seconds at `rate` Hz in detection; UserError where training had longer pieces."""
        size = round(seconds * rate) if math.isfinite(seconds) else 0
        if size < self.samples:
            raise UserError(f"window {seconds:g}: expected {self.samples / rate:.2f} s or more, as in the detector's training")
        return replace(self, whole=size)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("data", self)
        require("samples", self.samples >= 4096, "at least 4096")
        require("short", self.short in SHORT, " or ".join(SHORT))
        require("hop", 1 <= self.hop <= self.samples, f"1 to samples={self.samples}, so that no sample is passed over")
        require("whole", self.whole == 0 or self.whole >= self.samples, f"0, or at least samples={self.samples}")
        require("level", self.level is None or -90 <= self.level <= 0, "-90 to 0 dB of full scale, or null")
        require("silence", self.silence == 0 or self.silence >= 80, "0, or at least 80")
        require("batch_size", self.batch_size >= (2 if self.balanced else 1), "at least 1, or 2 with balanced=true")
        require("clean_batches", self.clean_batches >= 0, "at least 0")
        require("resynthesized", 0 <= self.resynthesized <= 1, "0 to 1")
        require("resynthesized", self.balanced or not self.resynthesized, "0 without balanced=true")
        require("often", all(0 < times < math.inf for times in self.often.values()), "numbers above 0, such as {A04: 3}")
        require("often", self.balanced or not self.often, "{} without balanced=true")
        require("even_pages", 0 <= self.even_pages <= 1, "0 to 1")
        require("pair_loss", 0 <= self.pair_loss < math.inf, "at least 0")
        require("pair_loss", self.balanced or not self.pair_loss, "0 without balanced=true")
        require("speed", 0 <= self.speed <= 50, "0 to 50 percent")
        require("cache_gigabytes", 0 <= self.cache_gigabytes < math.inf, "at least 0")


@dataclass
class AugmentConfig:
    """What becomes of a training crop: anonymised, heard in a room, with noise, with music, through a codec, each by itself.

    The paper names the kinds and the coefficients; how often, and the SNRs, are a choice (their ends are Kaldi's x-vectors').
    """

    mcadams: float = 0.5  # probability; 0 switches off, here and below
    coefficients: list[float] = field(default_factory=lambda: [0.8])  # one of them is drawn each time
    reverberation: float = 0.3
    noise: float = 0.3
    noise_snr: tuple[float, float] = (0.0, 15.0)  # dB, drawn evenly from lowest to highest
    music: float = 0.3
    music_snr: tuple[float, float] = (5.0, 15.0)
    codec: float = 0.0  # one of pyspeech.spoof.codecs; the paper has none
    # what is mixed with speech: recordings from free packages, sounds made up (simulated), or all audio in a folder and below
    noise_dir: str = folder_or("packages", "simulated", what="noises, such as musan/noise")
    music_dir: str = folder_or("packages", "simulated", what="music, such as musan/music")
    # rooms made up, or the impulse responses in a folder and below
    room_dir: str = folder_or("simulated", what="impulse responses, such as RIRS_NOISES")

    def __post_init__(self) -> None:
        # YAML has lists alone.
        self.noise_snr = tuple(self.noise_snr)  # pyright: ignore[reportAttributeAccessIssue]
        self.music_snr = tuple(self.music_snr)  # pyright: ignore[reportAttributeAccessIssue]

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("augment", self)
        for name in ("mcadams", "reverberation", "noise", "music", "codec"):
            require(name, 0 <= getattr(self, name) <= 1, "a probability, 0 to 1")
        good = all(0 < value < math.inf for value in self.coefficients)
        require("coefficients", good and bool(self.coefficients or not self.mcadams), "numbers above 0, such as [0.8, 0.9]")
        for name in ("noise_snr", "music_snr"):
            limits = getattr(self, name)
            good = len(limits) == 2 and -math.inf < limits[0] <= limits[1] < math.inf
            require(name, good, "the lowest and the highest SNR in dB")
