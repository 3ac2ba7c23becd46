"""Options of the detector of fake audio and of its training data, as plain dataclasses; it imports nothing heavy.

The defaults are the paper's (Li et al. 2022, Table 1 and section 3.2) where it names a value. Where it is silent they
are choices: dropout and residual (see DetectorConfig), the floor of the logarithm, that no mean is removed, the hop of
windows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspeech.errors import UserError, folder_or, requirement
from pyspeech.features.config import check_rate
from pyspeech.model_file import Kind
from pyspeech.spoof.registry import FRONT_ENDS, NETWORKS

KIND = Kind("fake audio detector", "add2022", "exp/NAME/models/SYSTEM/SEED")
SHORT = ("zeros", "repeat")
REMOVED = ("pair_loss",)  # options of training crops that older model files have; they are of no use in detection
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
    """Front end; by default a log-mel spectrogram with centred frames, as torchaudio.transforms.MelSpectrogram computes it."""

    sampling_rate: int = 16000  # Hz, 1000 to 192000; audio at other rates is resampled
    n_fft: int = 1024  # FFT size in samples
    window: int = 512  # length of the Hann window in samples, at most n_fft
    shift: int = 256  # samples from frame to frame, at most window
    num_bins: int = 80  # number of filters; outputs of the projection with front_end=self_supervised
    scale: str = "mel"  # spacing of the filters: mel, or linear (more resolution at high frequencies)
    floor: float = 1e-6  # added to the energies before the logarithm
    remove_mean: bool = False  # subtract each bin's mean over the crop, to remove level and channel
    # logmel, linear (log power spectrogram), self_supervised, or another of pyspeech/spoof/registry.py
    front_end: str = "logmel"
    # encoder of front_end=self_supervised: a torchaudio bundle, or a folder with config.json and weights.pt
    pretrained: str = folder_or(*BUNDLES, what="config.json and weights.pt")
    layer: int = 0  # encoder layer to use, from 1; 0: a learnt weighted sum of all layers
    fine_tuned: bool = False  # train the encoder too and save it in model files

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
    """Network; by default the LCNN-BLSTM of Table 1.

    The paper does not give the dropout or mention the residual; the public code that it builds on has 0.7 and the residual.
    """

    kind: str = "lcnn_blstm"  # lcnn_blstm (the paper), resnet, or another of pyspeech/spoof/registry.py
    dropout: float = 0.7  # dropout probability of Dropout_28, 0 to less than 1
    residual: bool = False  # add the BLSTM's input to its output (lcnn_blstm only; not in Table 1)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("network", self)
        require("kind", self.kind in NETWORKS, f"one of {', '.join(NETWORKS)}")
        require("dropout", 0 <= self.dropout < 1, "0 to less than 1")
        require("residual", self.kind == "lcnn_blstm" or not self.residual, f"false with kind={self.kind}")


@dataclass
class CropConfig:
    """Crops of fixed length: random ones in training, windows in detection."""

    samples: int = 64600  # length of a crop in samples; the default, 4.04 s, gives the 253 frames of Table 1
    short: str = "zeros"  # pad shorter utterances with zeros, or repeat them
    hop: int = 32300  # samples from window to window in detection, at most samples
    whole: int = 0  # in detection, score up to this many samples whole, more in windows this long; 0: windows of data.samples
    level: float | None = None  # scale each crop to this RMS level in dB of full scale, -90 to 0; null: leave it
    silence: int = 0  # cut out digital silence of at least this many samples, e.g. 800; 0: off
    batch_size: int = 64  # crops per batch
    balanced: bool = False  # draw both classes equally often in training
    clean_batches: int = 0  # number of batches at the start of training without augmentation and masks
    # share of the fakes in training made from genuine speech by simulated vocoders, 0 to 1 (balanced only)
    resynthesized: float = 0.0
    # sampling weight per attack, e.g. {A04: 3}; default 1 (balanced only)
    often: dict[str, float] = field(default_factory=dict)
    # how evenly pages are drawn, by size ** (1 - even_pages); 1: equally often, 0: by size (balanced only)
    even_pages: float = 1.0
    speed: int = 0  # play crops up to this many percent faster or slower in training, 0 to 50; 0: off
    shortened: float = 0.0  # share of crops in training cut to half a second or more, each length as likely, 0 to 1
    cache_gigabytes: float = 2.0  # gigabytes of audio kept in memory, shared by all reading processes

    without_effect = ("cache_gigabytes",)

    def in_windows_of(self, seconds: float, rate: int) -> "CropConfig":
        """Return a copy with detection windows of `seconds` at `rate` Hz; UserError if the crops in training are longer."""
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
        require("speed", 0 <= self.speed <= 50, "0 to 50 percent")
        require("shortened", 0 <= self.shortened <= 1, "0 to 1")
        require("cache_gigabytes", 0 <= self.cache_gigabytes < math.inf, "at least 0")


def saved_crop(options: Mapping[str, Any]) -> CropConfig:
    """Return the CropConfig of a model file; UserError for an option that makes no sense."""
    found = CropConfig(**{name: value for name, value in options.items() if name not in REMOVED})
    found.check()
    return found


@dataclass
class AugmentConfig:
    """Data augmentation of training crops: anonymisation, reverberation, noise, music and codecs, drawn independently.

    The paper names the kinds and the coefficients. Probabilities and SNRs are a choice; the SNR limits are Kaldi's (x-vectors).
    """

    mcadams: float = 0.5  # probability of McAdams anonymisation, 0 to 1
    # McAdams coefficients, of which one is drawn per crop; set per system
    coefficients: list[float] = field(default_factory=lambda: [0.8])
    reverberation: float = 0.3  # probability of reverberation, 0 to 1
    noise: float = 0.3  # probability of added noise, 0 to 1
    noise_snr: tuple[float, float] = (0.0, 15.0)  # range of the signal-to-noise ratio in dB, drawn uniformly
    music: float = 0.3  # probability of added music, 0 to 1
    music_snr: tuple[float, float] = (5.0, 15.0)  # range of the speech-to-music ratio in dB, drawn uniformly
    codec: float = 0.0  # probability of a speech or audio codec (pyspeech/spoof/codecs.py), 0 to 1; the paper has none
    # noise: packages (free recordings), simulated, or a folder of audio
    noise_dir: str = folder_or("packages", "simulated", what="noises, such as musan/noise")
    # music: packages (free recordings), simulated, or a folder of audio
    music_dir: str = folder_or("packages", "simulated", what="music, such as musan/music")
    # rooms: simulated, or a folder of impulse responses
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
