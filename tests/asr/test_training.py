"""What a training step computes: several languages in a batch, language identification, the warm-up."""

import pytest
import torch
from tiny_asr import SMALL

from pyspeech.asr.config import LossConfig, TransducerConfig
from pyspeech.asr.networks import Transducer
from pyspeech.asr.training import TransducerTraining

SIZES = {"en-IN": 9, "hi-IN": 7, "ta-IN": 5}


def make_training(lid=True, **options):
    torch.manual_seed(3)
    config = TransducerConfig(**{**SMALL, "lid": lid, "encoder_layers": 1, "predictor_layers": 1})
    return TransducerTraining(Transducer(config, SIZES).double(), LossConfig(**options), warmup_batches=4)


def make_batch(languages, seed=5):
    """Utterances of these languages (indices) of several lengths."""
    generator = torch.Generator().manual_seed(seed)
    count = len(languages)
    lengths = torch.randint(6, 15, (count,), generator=generator)
    token_lengths = torch.randint(1, 5, (count,), generator=generator)
    tokens = torch.randint(1, min(SIZES.values()), (count, 4), generator=generator)
    return {
        "features": torch.randn(count, int(lengths.max()), 16, generator=generator, dtype=torch.float64),
        "lengths": lengths,
        "tokens": tokens * (torch.arange(4) < token_lengths[:, None]),
        "token_lengths": token_lengths,
        "languages": torch.tensor(languages),
    }


def part_of(batch, rows):
    return {name: values[rows] for name, values in batch.items()}


def gradients(training, loss):
    training.zero_grad(set_to_none=True)
    loss.backward()
    return {name: parameter.grad for name, parameter in training.named_parameters()}


@pytest.mark.parametrize("full", [False, True])
def test_several_languages_are_the_mean_over_the_frames_of_each_alone(full):
    training = make_training(full=full).eval()
    batch = make_batch([0, 2, 0, 1, 2])
    loss, values = training(batch)
    frames, expected, lid = batch["lengths"].sum(), 0.0, 0.0
    for rows in ([0, 2], [3], [1, 4]):
        part = part_of(batch, rows)
        own, own_values = training(part)
        share = part["lengths"].sum() / frames
        expected, lid = expected + share * own, lid + share * own_values["lid"]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert values["lid"] == pytest.approx(lid.item(), rel=1e-6)


def test_only_what_is_shared_and_of_the_language_is_trained():
    training = make_training()
    found = gradients(training, training(make_batch([1, 1, 1]))[0])
    trained = {name for name, gradient in found.items() if gradient is not None and gradient.abs().sum() > 0}
    for head in range(3):
        for layers in ("predictor.embeddings", "joint.outputs", "simple_am_outputs", "simple_lm_outputs"):
            assert any(name.startswith(f"transducer.{layers}.{head}.") for name in trained) == (head == 1), (layers, head)
    for shared in ("encoder.lstm.weight_ih_l0", "predictor.networks.0.lstms.0.weight_ih_l0", "joint.encoder.weight"):
        assert f"transducer.{shared}" in trained


def test_language_identification_reaches_encoder_and_its_own_layers_alone():
    """Section 4.2: the cross entropy only affects the encoder and the LID parameters, and is added as it is."""
    batch = make_batch([0, 1, 2])
    with_lid, without = make_training(), make_training(lid=False)
    without.load_state_dict({name: value for name, value in with_lid.state_dict().items() if ".lid." not in name})
    losses = [training.eval()(batch) for training in (with_lid, without)]
    assert losses[0][0].item() == pytest.approx(losses[1][0].item() + losses[0][1]["lid"], rel=1e-6)
    with_lid.loss.lid_scale = 0.3
    scaled = losses[1][0].item() + 0.3 * losses[0][1]["lid"]
    assert with_lid(batch)[0].item() == pytest.approx(scaled, rel=1e-6)
    found = [gradients(training, loss) for training, (loss, _) in zip((with_lid, without), losses, strict=True)]
    for name, gradient in found[1].items():
        same = torch.allclose(found[0][name], gradient, rtol=1e-5, atol=1e-9)
        assert same != name.startswith("transducer.encoder."), name


def test_cross_entropy_is_over_the_frames_that_exist():
    training = make_training().eval()
    batch = make_batch([0, 2])
    encoded, _, _ = training.transducer.encode(batch["features"], batch["lengths"])
    log_posteriors = training.transducer.lid_log_posteriors(encoded)
    terms = [
        -log_posteriors[row, frame, int(batch["languages"][row])].item()
        for row in range(2)
        for frame in range(int(batch["lengths"][row]))
    ]
    assert training(batch)[1]["lid"] == pytest.approx(sum(terms) / len(terms), rel=1e-6)


def test_warm_up_counts_training_batches_and_is_saved():
    training, batch = make_training(lid=False), make_batch([0, 0])
    at_start = training(batch)[0].item()
    for _ in range(3):
        training(batch)
    assert int(training.state_dict()["batches"]) == 4
    after = training(batch)[0].item()
    assert after == pytest.approx(training.eval()(batch)[0].item(), rel=1e-9)  # validation: as after the warm-up
    assert abs(after - at_start) > 1e-3
    assert int(training.batches) == 5
