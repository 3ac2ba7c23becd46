"""The LCNN-BLSTM: each row of Table 1 of Li et al. 2022, its features, and what its parts compute."""

import numpy as np
import pytest
import torch

from pyspeech.errors import UserError
from pyspeech.spoof.config import CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.networks import LcnnBlstm, LogMel, MaxFeatureMap2d, log_odds

# Table 1, but for its first column's "MaxFeatureMap2D" and "2d_224": layer, output shape, parameters.
TABLE_1 = """
Conv2d_0        64, 64, 253, 80   1664
MaxFeatureMap_1 64, 32, 253, 80   0
MaxPool2d_2     64, 32, 126, 40   0
Conv2d_3        64, 64, 126, 40   2112
MaxFeatureMap_4 64, 32, 126, 40   0
BatchNorm2d_5   64, 32, 126, 40   0
Conv2d_6        64, 96, 126, 40   27744
MaxFeatureMap_7 64, 48, 126, 40   0
MaxPool2d_8     64, 48, 63, 20    0
BatchNorm2d_9   64, 48, 63, 20    0
Conv2d_10       64, 96, 63, 20    4704
MaxFeatureMap_11 64, 48, 63, 20   0
BatchNorm2d_12  64, 48, 63, 20    0
Conv2d_13       64, 128, 63, 20   55424
MaxFeatureMap_14 64, 64, 63, 20   0
MaxPool2d_15    64, 64, 31, 10    0
Conv2d_16       64, 128, 31, 10   8320
MaxFeatureMap_17 64, 64, 31, 10   0
BatchNorm2d_18  64, 64, 31, 10    0
Conv2d_19       64, 64, 31, 10    36928
MaxFeatureMap_20 64, 32, 31, 10   0
BatchNorm2d_21  64, 32, 31, 10    0
Conv2d_22       64, 64, 31, 10    2112
MaxFeatureMap_23 64, 32, 31, 10   0
BatchNorm2d_24  64, 32, 31, 10    0
Conv2d_25       64, 64, 31, 10    18496
MaxFeatureMap_26 64, 32, 31, 10   0
MaxPool2d_27    64, 32, 15, 5     0
Dropout_28      64, 32, 15, 5     0
LSTM            15, 64, 160       154880
LSTM            15, 64, 160       154880
Linear          64, 2             322
""".strip().splitlines()


def test_every_row_of_table_1():
    model, rows = LcnnBlstm(), []

    def note(module, inputs, output):
        output = output[0] if isinstance(output, tuple) else output
        kind = type(module).__name__.replace("MaxFeatureMap2d", "MaxFeatureMap")
        index = f"_{len(rows)}" if len(rows) < 29 else ""
        count = sum(parameter.numel() for parameter in module.parameters())
        rows.append([kind + index, ", ".join(map(str, output.shape)), str(count)])

    for module in (*model.cnn, *model.blstm, model.output):
        module.register_forward_hook(note)
    with torch.no_grad():
        model(torch.randn(64, 64600))
    assert rows == [[line.split()[0], *line.split(None, 1)[1].rsplit(None, 1)] for line in TABLE_1]
    assert sum(parameter.numel() for parameter in model.parameters()) == 467586


def test_log_mel_is_the_formula(rng):
    samples = rng.standard_normal(5000)
    padded = np.pad(samples, 512, mode="reflect")
    window = np.zeros(1024)
    window[256:768] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)
    power = np.stack([np.abs(np.fft.rfft(window * padded[start : start + 1024])) ** 2 for start in range(0, 5001, 256)])
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82) / 2595) - 1)
    bins = np.linspace(0, 8000, 513)
    filters = np.stack(
        [
            np.clip(np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre)), 0, None)
            for low, centre, high in zip(corners, corners[1:], corners[2:], strict=False)
        ]
    )
    found = LogMel(LogMelConfig())(torch.from_numpy(samples)[None])
    assert found.dtype == torch.float32 and found.shape == (1, 20, 80) == (1, LogMelConfig().num_frames(5000), 80)
    assert np.allclose(found[0], np.log(power @ filters.T + 1e-6), atol=2e-4)
    assert torch.allclose(LogMel(LogMelConfig())(torch.zeros(1, 5000)), torch.tensor(np.log(1e-6), dtype=torch.float32))


def test_linear_filters():
    """Triangles whose corners are as far from each other all over: here by interpolation, not by their slopes."""
    samples = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    window = np.zeros(1024)
    window[256:768] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)
    padded = np.pad(samples, 512, mode="reflect")
    power = np.stack([np.abs(np.fft.rfft(window * padded[start : start + 1024])) ** 2 for start in range(0, 5001, 256)])
    corners, bins = np.linspace(0, 8000, 82), np.linspace(0, 8000, 513)
    filters = np.stack([np.interp(bins, corners[index : index + 3], [0, 1, 0]) for index in range(80)])
    found = LogMel(LogMelConfig(scale="linear"))(torch.from_numpy(samples)[None])
    assert np.allclose(found[0], np.log(power @ filters.T + 1e-6), atol=2e-4)


def test_without_the_mean_level_and_channel_do_not_count():
    samples = np.random.default_rng(2).standard_normal(20000)
    filtered = np.convolve(samples, [0.5, 0.3])[:20000]  # a channel shorter than a window
    frames = LogMel(LogMelConfig(remove_mean=True))
    first, louder, second = (frames(torch.from_numpy(one)[None])[0] for one in (samples, 7 * samples, filtered))
    assert first.mean(dim=0).abs().max() < 1e-4 and first.std() > 0.1
    assert torch.allclose(first, louder, atol=1e-3)
    assert (first - second).abs().mean() < 0.02 * first.std()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_max_feature_map(rng, layout):
    maps = torch.from_numpy(rng.standard_normal((2, 6, 3, 4))).to(memory_format=layout)
    expected = np.maximum(maps[:, :3].numpy(), maps[:, 3:].numpy())
    assert np.array_equal(MaxFeatureMap2d()(maps), expected)
    assert torch.autograd.gradcheck(MaxFeatureMap2d(), maps.requires_grad_())


def test_max_feature_map_of_equal_halves_passes_the_gradient_once():
    maps = torch.ones(1, 4, 2, 2, requires_grad=True)
    MaxFeatureMap2d()(maps).sum().backward()
    assert maps.grad[:, :2].eq(1).all() and maps.grad[:, 2:].eq(0).all()


def lstm_by_hand(inputs, layer):
    """(T, values) -> (T, 160): both directions, step by step."""

    def direction(inputs, suffix):
        weights = [
            getattr(layer, name + suffix).detach().numpy()
            for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        ]
        hidden, cell, outputs = np.zeros(80), np.zeros(80), []
        for frame in inputs:
            gates = np.split(weights[0] @ frame + weights[1] @ hidden + weights[2] + weights[3], 4)
            enter, forget, leave = (1 / (1 + np.exp(-gates[index])) for index in (0, 1, 3))
            cell = forget * cell + enter * np.tanh(gates[2])
            hidden = leave * np.tanh(cell)
            outputs.append(hidden)
        return outputs

    return np.concatenate([direction(inputs, ""), direction(inputs[::-1], "_reverse")[::-1]], axis=1)


@pytest.mark.parametrize("residual", [False, True])
def test_recurrent_part_and_pooling_by_hand(residual):
    torch.manual_seed(0)
    model = LcnnBlstm(DetectorConfig(residual=residual)).eval()
    features = torch.randn(2, 37, 80)
    with torch.no_grad():
        outputs = model.classify(features)
        maps = model.cnn(features[:, None]).numpy()
    for index in range(2):
        frames = np.stack([maps[index, :, time].reshape(160) for time in range(2)])
        hidden = lstm_by_hand(lstm_by_hand(frames, model.blstm[0]), model.blstm[1])
        pooled = (hidden + residual * frames).mean(axis=0)
        expected = model.output.weight.detach().numpy() @ pooled + model.output.bias.detach().numpy()
        assert np.allclose(outputs[index], expected, atol=1e-5)
    assert log_odds(outputs)[0] == outputs[0, 1] - outputs[0, 0]


def test_the_batch_does_not_matter_in_detection_and_dropout_only_in_training():
    torch.manual_seed(0)
    model = LcnnBlstm()
    samples = torch.randn(3, 8000)
    with torch.no_grad():
        assert not torch.equal(model(samples), model(samples))
        model.eval()
        assert torch.allclose(model(samples)[1:2], model(samples[1:2]), atol=1e-5)


def test_checkpoints_hold_no_filters():
    state = LcnnBlstm().state_dict()
    assert not [name for name in state if name.startswith("log_mel")]
    assert [name for name in state if name.endswith("running_var")]
    LcnnBlstm(features=LogMelConfig(n_fft=512)).load_state_dict(state)


def test_options_that_make_no_sense():
    for call, message in (
        (lambda: LcnnBlstm(DetectorConfig(dropout=1.0)), "network option dropout=1.0: expected 0 to"),
        (lambda: LogMel(LogMelConfig(window=2048)), "features option window=2048"),
        (lambda: LogMel(LogMelConfig(scale="bark")), "features option scale=bark: expected mel or linear"),
        (lambda: LogMel(LogMelConfig(num_bins=8)), "features option num_bins=8: expected 16"),
        (lambda: CropConfig(short="loop").check(), "data option short=loop: expected zeros or"),
        (lambda: CropConfig(hop=0).check(), "data option hop=0"),
        (lambda: CropConfig(batch_size=1, balanced=True).check(), "data option batch_size=1"),
        (lambda: CropConfig(often={"A04": 0.0}, balanced=True).check(), "data option often="),
        (lambda: CropConfig(often={"A04": 2.0}).check(), "without balanced=true"),
    ):
        with pytest.raises(UserError, match=message):
            call()
