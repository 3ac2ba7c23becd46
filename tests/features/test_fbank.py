"""Log-mel features: against torchaudio's Kaldi fbank and a slow plain version; streams; the ends of signals."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
import torchaudio
from tiny_audio import noise_tensor

from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import FbankStream, GlobalStats, fbank, stack

CONFIG = FbankConfig()


def chirp(count):
    time = torch.arange(count) / 16000
    return 0.5 * torch.sin(2 * math.pi * (200 + 900 * time) * time)


def test_sizes():
    assert (CONFIG.dim, CONFIG.frame_seconds, CONFIG.window, CONFIG.shift) == (640, 0.03, 400, 160)


@pytest.mark.parametrize("rate", [16000, 8000, 11025])
@pytest.mark.parametrize(
    "signal", [noise_tensor(8013), chirp(8013) + noise_tensor(8013, scale=1e-3), noise_tensor(400, seed=3)]
)
def test_equals_torchaudio(rate, signal):
    config = FbankConfig(sampling_rate=rate)
    expected = torchaudio.compliance.kaldi.fbank(
        signal[None].double(), num_mel_bins=80, sample_frequency=rate, dither=0.0, snip_edges=True, low_freq=20.0
    )
    ours = fbank(signal, config)
    assert ours.dtype == torch.float32 and ours.shape == expected.shape
    assert (ours - expected).abs().max() < 1e-5


def plain_log_mel(window, rate, num_bins):
    """The definition, sample by sample: one frame (num_bins,)."""
    size = len(window)
    n_fft = 1
    while n_fft < size:
        n_fft *= 2
    mean = sum(window) / size
    window = [value - mean for value in window]
    window = [window[i] - 0.97 * window[max(0, i - 1)] for i in range(size)]
    window = [value * (0.5 - 0.5 * math.cos(2 * math.pi * i / (size - 1))) ** 0.85 for i, value in enumerate(window)]
    angles = np.outer(np.arange(n_fft // 2), np.arange(size)) * (2 * np.pi / n_fft)
    power = (np.cos(angles) @ window) ** 2 + (np.sin(angles) @ window) ** 2

    def mel(hertz):
        return 1127 * math.log(1 + hertz / 700)

    step = (mel(rate / 2) - mel(20)) / (num_bins + 1)
    frame = []
    for b in range(num_bins):
        left, centre, right = (mel(20) + (b + k) * step for k in range(3))
        energy = 0.0
        for k, value in enumerate(power):
            at = mel(k * rate / n_fft)
            energy += value * max(0.0, min((at - left) / (centre - left), (right - at) / (right - centre)))
        frame.append(math.log(max(energy, 2.0**-23)))
    return frame


def test_equals_the_plain_definition():
    signal = chirp(16000) + noise_tensor(16000, scale=0.01)
    frames = fbank(signal, CONFIG)
    assert len(frames) == 98
    for k in (0, 41, 97):
        plain = plain_log_mel(signal[160 * k : 160 * k + 400].double().tolist(), 16000, 80)
        # the filters of torchaudio are float32
        np.testing.assert_allclose(frames[k], plain, atol=2e-4)


def test_long_signals_are_computed_in_slabs():
    signal = noise_tensor(160 * 1500)
    whole = fbank(signal, CONFIG)
    assert len(whole) == 1498
    for k in (0, 511, 512, 1024, 1497):
        alone = fbank(signal[160 * k : 160 * k + 400], CONFIG)
        assert (alone[0] - whole[k]).abs().max() < 1e-6


def plain_stack(frames):
    """Encoder frame t: log-mel frames 3 t - 5 to 3 t + 2, with the first and the last repeated."""
    last = len(frames) - 1
    return [
        sum((frames[min(max(0, k), last)].tolist() for k in range(3 * t - 5, 3 * t + 3)), [])
        for t in range((len(frames) + 2) // 3)
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9, 50])
def test_stack_equals_the_plain_version(count):
    frames = noise_tensor(count * 80).reshape(count, 80)
    assert stack(frames, CONFIG).tolist() == plain_stack(frames)


def test_stack_of_other_sizes():
    frames = torch.arange(5.0)[:, None] * torch.ones(80)
    stacked = stack(frames, FbankConfig(stack=4, stack_shift=2))
    assert stacked[:, ::80].tolist() == [[0, 0, 0, 1], [0, 1, 2, 3], [2, 3, 4, 4]]
    assert torch.equal(stack(frames, FbankConfig(stack=1, stack_shift=1)), frames)


def test_encoder_frames_are_causal():
    """Encoder frame t ends with log-mel frame 3 t + 2, so with sample (3 t + 2) * 160 + 400."""
    signal = noise_tensor(16000)
    features = stack(fbank(signal, CONFIG), CONFIG)
    for t in (0, 5, 20):
        changed = signal.clone()
        end = (3 * t + 2) * 160 + 400
        changed[end:] = 0.3
        other = stack(fbank(changed, CONFIG), CONFIG)
        assert torch.equal(other[: t + 1], features[: t + 1])
        assert not torch.equal(other[t + 1], features[t + 1])


LENGTHS = [0, 1, 159, 160, 399, 400, 401, 559, 560, 719, 720, 880, 1040, 5000, 16000]


@pytest.mark.parametrize("length", LENGTHS)
def test_number_of_frames_and_the_end_of_a_stream(length):
    signal = noise_tensor(length)
    features = stack(fbank(signal, CONFIG), CONFIG)
    assert features.shape == (CONFIG.num_frames(length), 640)
    assert len(features) == (0 if length == 0 else 1 if length < 880 else len(features))
    stream = FbankStream(CONFIG)
    for _ in range(2):  # a finished stream is as new
        joined = torch.cat([stream.add(signal), stream.finish()])
        assert joined.shape == features.shape
        assert len(joined) == 0 or (joined - features).abs().max() <= 1e-6


def test_one_encoder_frame_more_every_30_ms():
    assert [CONFIG.num_frames(n) for n in (400, 879, 880, 1359, 1360)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("sizes", [[1], [7], [160], [400], [4801], [1, 3000, 2, 399, 480]])
@pytest.mark.parametrize("signal", [chirp(4801), torch.cat([torch.zeros(3000), noise_tensor(1700)])])
def test_stream_equals_offline(sizes, signal):
    config = CONFIG
    expected = stack(fbank(signal, config), config)
    stream, position, parts, count = FbankStream(config), 0, [], 0
    for size in itertools.cycle(sizes):
        parts.append(stream.add(signal[position : position + size].numpy()))
        position, count = min(position + size, len(signal)), count + len(parts[-1])
        complete = (position - config.window) // config.shift + 1  # nothing waits that could be there already
        assert count == max(0, complete) // 3
        if position == len(signal):
            break
    joined = torch.cat([*parts, stream.finish()])
    assert joined.shape == expected.shape and (joined - expected).abs().max() <= 1e-6


WITHOUT_MEAN = FbankConfig(mean_frames=7)


def test_running_mean_equals_the_plain_definition():
    signal = chirp(8000)
    frames, relative = fbank(signal, CONFIG).double(), fbank(signal, WITHOUT_MEAN)
    for index in range(len(frames)):
        expected = frames[index] - frames[max(0, index - 6) : index + 1].mean(dim=0)
        assert (relative[index] - expected).abs().max() < 1e-5
    assert len(relative) == len(frames) > 40 and not relative[0].any()


def test_running_mean_takes_gain_and_channel_off():
    signal = noise_tensor(8000)
    quiet, loud = (fbank(gain * signal, WITHOUT_MEAN) for gain in (0.5, 8.0))
    assert (quiet - loud).abs().max() < 1e-4
    assert (fbank(0.5 * signal, CONFIG) - fbank(8.0 * signal, CONFIG)).abs().min() > 5


@pytest.mark.parametrize("sizes", [[1], [7], [400], [4801], [1, 3000, 2, 399, 480]])
@pytest.mark.parametrize("frames", [2, 7, 1000])
def test_stream_with_running_mean_equals_offline(sizes, frames):
    config, signal = FbankConfig(mean_frames=frames), torch.cat([torch.zeros(2000), noise_tensor(2801)])
    expected = stack(fbank(signal, config), config)
    stream = FbankStream(config)
    for _ in range(2):  # a finished stream is as new
        position, parts = 0, []
        for size in itertools.cycle(sizes):
            parts.append(stream.add(signal[position : position + size]))
            position += size
            if position >= len(signal):
                break
        joined = torch.cat([*parts, stream.finish()])
        assert joined.shape == expected.shape and (joined - expected).abs().max() <= 1e-5


def test_silence_is_at_the_floor():
    frames = fbank(torch.zeros(1600), CONFIG)
    assert torch.equal(frames, torch.full((8, 80), 2.0**-23).log())
    offset = fbank(torch.full((1600,), 0.25), CONFIG)  # a recorder's offset is silence too
    assert torch.equal(offset, frames)


def test_misuse():
    with pytest.raises(ValueError, match="int16"):
        fbank(np.zeros(500, np.int16), CONFIG)
    with pytest.raises(ValueError, match=r"\(2, 500\)"):
        fbank(torch.zeros(2, 500), CONFIG)
    with pytest.raises(UserError, match="fewer bins"):
        fbank(torch.zeros(500), FbankConfig(num_bins=200))
    for wrong in (
        {"stack_shift": 9},
        {"stack_shift": 0},
        {"shift_ms": 30},
        {"shift_ms": 0},
        {"num_bins": 2},
        {"mean_frames": 1},
        {"mean_frames": -3},
        {"kind": "htk"},
    ):
        with pytest.raises(UserError, match="^features option [a-z_]*=(-?[0-9]+|htk): expected"):
            FbankConfig(**wrong).check()
    CONFIG.check()


def test_stats_equal_those_of_all_frames_at_once(tmp_path):
    utterances = [100 + 3 * noise_tensor(80 * n, seed=n).reshape(n, 80) for n in (5, 1, 0, 200)]
    stats = GlobalStats.compute(iter(utterances))
    frames = torch.cat(utterances).double()
    np.testing.assert_allclose(stats.mean, frames.mean(dim=0), rtol=1e-12)
    np.testing.assert_allclose(stats.std, frames.std(dim=0, unbiased=False).clamp(min=0.1), rtol=1e-7)
    stats.save(tmp_path / "stats.json")
    assert GlobalStats.load(tmp_path / "stats.json") == stats == GlobalStats.from_dict(stats.to_dict())
    assert set(json.loads((tmp_path / "stats.json").read_text())) == {"mean", "std"}


def test_stats_apply_to_frames_and_to_stacked_frames():
    frames = fbank(chirp(8000) + noise_tensor(8000), CONFIG)
    stats = GlobalStats.compute([frames])
    normalised = stats.apply(frames)
    assert normalised.mean(dim=0).abs().max() < 1e-4
    assert (normalised.std(dim=0, unbiased=False) - 1).abs().max() < 1e-4
    assert torch.equal(stack(normalised, CONFIG), stats.apply(stack(frames, CONFIG)))


def test_stats_of_bins_that_do_not_change():
    stats = GlobalStats.compute([torch.full((10, 80), -15.0)])
    assert stats.std == pytest.approx([0.1] * 80)


def test_stats_that_are_not_there(tmp_path):
    with pytest.raises(UserError, match="no audio"):
        GlobalStats.compute([])
    with pytest.raises(UserError, match="none.json"):
        GlobalStats.load(tmp_path / "none.json")
    for text in ("{", "[]", '{"mean": [1]}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(UserError, match="bad.json: not the mean"):
            GlobalStats.load(tmp_path / "bad.json")


@pytest.mark.parametrize("rate", [16000, 8000])
def test_nemo_frames_equal_the_plain_definition(rate):
    """Window by window: pre-emphasis, Hann, Slaney's filters of area 1 (torchaudio's, which are librosa's)."""
    size, signal = rate // 40, chirp(8013) + noise_tensor(8013, scale=1e-3)
    windows = signal.double().unfold(0, size, size * 2 // 5)
    windows = windows - 0.97 * torch.cat([windows[:, :1], windows[:, :-1]], dim=1)
    n_fft = 512 * rate // 16000
    power = torch.fft.rfft(windows * torch.hann_window(size, dtype=torch.float64), n_fft).abs().square()
    filters = torchaudio.functional.melscale_fbanks(n_fft // 2 + 1, 0.0, rate / 2, 40, rate, "slaney", "slaney")
    expected = (power @ filters.double()).clamp(min=2.0**-23).log()
    ours = fbank(signal, FbankConfig(kind="nemo", sampling_rate=rate, num_bins=40))
    assert ours.shape == expected.shape and (ours - expected).abs().max() < 1e-3
