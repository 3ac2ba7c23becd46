"""What holds on a GPU: CUDA's rules of autocast, replayed over a training step of every system on a CPU; and, where there is
a GPU, ten steps, scores and decisions beside those of the CPU."""

import logging
import runpy
from dataclasses import replace

import pytest
import torch
from recipe_harness import ROOT
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from pyspeech.asr import training as transducer_training
from pyspeech.asr.networks import Transducer
from pyspeech.compat import autocast, is_autocast
from pyspeech.sad import training as sad_training
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.networks.output import highest_score
from pyspeech.spoof import training as spoofing_training
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.training.config import TrainConfig
from pyspeech.training.optimization import make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer
from pyspeech.units import training as units_training
from pyspeech.units.inverter import Inverter
from pyspeech.units.layers import ResidualConvolution, TransformerLayer
from pyspeech.units.vqvae import VqVae

# Of torch's documentation ("CUDA Ops that can autocast"), as far as names occur in Python; fp64 stays as it is.
IN_BF16 = {"addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "einsum"}
IN_BF16 |= {"linear", "matmul", "rmatmul", "mm", "mv", "prelu", "scaled_dot_product_attention"}
IN_FP32 = {"acos", "asin", "binary_cross_entropy_with_logits", "cdist", "cosine_similarity", "cross_entropy", "cumprod"}
IN_FP32 |= {"cumsum", "dist", "exp", "expm1", "group_norm", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2"}
IN_FP32 |= {"log_softmax", "logsumexp", "mse_loss", "nll_loss", "norm", "normalize", "pow", "prod", "reciprocal", "rpow"}
IN_FP32 |= {"rsqrt", "rtruediv", "rdiv", "smooth_l1_loss", "softmax", "softplus", "square", "sum", "tan"}
IN_THE_WIDEST = {"addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "index_put", "scatter_add", "tensordot"}
REFUSED = {"binary_cross_entropy"}
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell"}  # cuDNN's: in fp16, whatever was asked for
# Bf16 has steps of 2^-8: no two near maxima differ, a sigmoid saturates, a sum over many frames stops growing.
NEED_FP32 = {"sigmoid", "amax", "max_pool1d", "logsumexp", "log_softmax", *(name for name in IN_FP32 if name.endswith("_loss"))}
NEED_FP32 |= {"cross_entropy", "binary_cross_entropy"}
HALF = (torch.bfloat16, torch.float16)


class CudaRules(TorchFunctionMode):
    """Within, what CPU autocast would do is done as CUDA's does it; `wrong` names what must not be there."""

    def __init__(self):
        super().__init__()
        self.wrong, self.cast = set(), set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs, floats = getattr(function, "__name__", "").strip("_"), kwargs or {}, []
        if name not in IN_BF16 | IN_FP32 | IN_THE_WIDEST | REFUSED | RECURRENT | NEED_FP32:
            return function(*args, **kwargs)
        tree_map(lambda x: floats.append(x) if torch.is_tensor(x) and x.is_floating_point() else None, (args, kwargs))
        dtypes = {values.dtype for values in floats}
        if name in NEED_FP32 and dtypes & set(HALF):
            self.wrong.add(f"{name} of bf16")
        if not is_autocast(torch.device("cpu")):
            return function(*args, **kwargs)
        if name in REFUSED:
            self.wrong.add(f"{name} is refused")
        if name in RECURRENT:
            self.wrong.add(f"{name} in fp16")
        dtype = torch.bfloat16 if name in IN_BF16 else torch.float32
        if name not in IN_BF16 | IN_FP32 | IN_THE_WIDEST | RECURRENT or name in IN_THE_WIDEST and dtypes <= set(HALF):
            dtype = None
        else:
            self.cast.add(dtype)

        def convert(values):
            fits = torch.is_tensor(values) and values.is_floating_point() and values.dtype != torch.float64
            return values.to(dtype) if dtype and fits else values

        if name in RECURRENT:  # has been found; its weights stay as they are
            convert = lambda values: values.float() if torch.is_tensor(values) and values.dtype in HALF else values  # noqa: E731
        with autocast("cpu", enabled=False):
            return function(*tree_map(convert, tuple(args)), **tree_map(convert, kwargs))


def test_the_rules_find_what_cuda_refuses_and_halves():
    gru, linear, values = torch.nn.GRU(3, 4), torch.nn.Linear(3, 3), torch.rand(2, 5, 3)

    def found(compute, enabled=True):
        with CudaRules() as rules, autocast("cpu", enabled=enabled):
            compute()
        return rules.wrong

    entropy = torch.nn.functional.binary_cross_entropy
    assert found(lambda: entropy(values, values)) == {"binary_cross_entropy is refused"}
    assert found(lambda: gru(values)) == {"gru in fp16"}
    assert found(lambda: torch.nn.LSTM(3, 4)(values)) == {"lstm in fp16"}
    assert found(lambda: linear(values).sigmoid()) == {"sigmoid of bf16"}
    assert found(lambda: linear(values).amax(2)) == {"amax of bf16"}
    assert found(lambda: (entropy(values, values), gru(values), values.sigmoid()), enabled=False) == set()
    with CudaRules(), autocast("cpu"):
        hidden = linear(values)
        assert (hidden.dtype, (values @ values.transpose(1, 2)).dtype) == (torch.bfloat16, torch.bfloat16)
        assert (hidden.softmax(2).dtype, hidden.pow(2).dtype, hidden.relu().dtype) == (torch.float32,) * 2 + (torch.bfloat16,)
        assert (hidden.double() @ hidden.double().transpose(1, 2)).dtype == torch.float64


def full(recipe):
    """The options of a recipe's profile `full`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPEECH_ENV", "system")
        return runpy.run_path(str(ROOT / "egs" / recipe / "run.py"), run_name="run")["recipe"].configure("full")[1]


def sad(temporal):
    conf = full("fearless")
    network = replace(conf.network, temporal=temporal, channels=[4, 8], cnn_channels=12, rnn_size=16, context_seconds=0.5)
    model = SadNetwork(network, conf.features)
    context, frames = model.context, 60
    valid = torch.ones(3, frames + 2 * context, dtype=torch.bool)
    valid[1, -context - 20 :] = False  # a recording that ends within the crop: packed sequences
    targets = (torch.arange(frames) // 15 % 2).float().repeat(3, 1)
    gains = torch.nn.functional.pad(targets, (context, context)).repeat_interleave(80, dim=1) + 0.01
    labelled = valid[:, context : context + frames]
    batch = {"samples": torch.randn(3, gains.shape[1]) * gains, "valid": valid, "targets": targets, "labelled": labelled}

    def score(model, batch):
        return model(batch["samples"], batch["valid"], context, context)

    return model, sad_training.compute_loss, batch, score


def spoofing():
    conf = full("add2022")
    model = LcnnBlstm(replace(conf.network, dropout=0.0), conf.features)
    batch = {
        "samples": 0.1 * torch.randn(4, 16000) * torch.tensor([1.0, 0.3, 1.0, 0.3])[:, None],
        "targets": torch.tensor([0, 1, 0, 1]),
        "seconds": 4.0,
        "clean": True,
    }
    return model, spoofing_training.compute_loss, batch, lambda model, batch: model(batch["samples"])


def transducer(**structure):
    from tiny_asr import SMALL

    conf = full("indic")
    sizes = {"hi-IN": 9} if structure["structure"] == "monolingual" else {"en-IN": 9, "hi-IN": 9, "ta-IN": 9}
    config = replace(conf.model, **{"dropout": 0.0, **SMALL, "lid": False, **structure})
    model = transducer_training.TransducerTraining(Transducer(config, sizes), conf.loss, warmup_batches=4)
    lengths, token_lengths = torch.tensor([30, 22, 26]), torch.tensor([6, 3, 5])
    batch = {
        "features": torch.randn(3, 30, config.features),
        "lengths": lengths,
        "tokens": torch.randint(1, 9, (3, 6)) * (torch.arange(6) < token_lengths[:, None]),
        "token_lengths": token_lengths,
        "languages": torch.arange(3) % len(sizes),
    }

    def score(training, batch):
        return training.transducer.encode(batch["features"], batch["lengths"], languages=batch["languages"])[0]

    return model, transducer_training.compute_loss, batch, score


VQVAE = dict(dim=32, heads=2, feedforward=64, codes=16, code_dim=8, speaker_dim=4, quantise_after=0, dropout=0.0)


def vqvae(kind):
    conf = full("zerospeech")
    model = VqVae(replace(conf.vqvae, kind=kind, **VQVAE), 3)
    batch = {
        "features": torch.randn(3, 40, model.config.features).cumsum(1) / 4,
        "lengths": torch.tensor([40, 33, 21]),
        "speakers": torch.tensor([0, 2, 1]),
        "seconds": 1.0,
    }

    def score(training, batch):
        return training.vqvae.latents(batch["features"], batch["lengths"])[0]

    return units_training.VqVaeTraining(model), units_training.compute_loss, batch, score


def inverter():
    training, _, batch, _ = vqvae("transformer")
    config = replace(full("zerospeech").inverter, dim=32, heads=2, feedforward=64, bins=33, dropout=0.0)
    batch["magnitudes"] = torch.rand(3, 40, 33)
    batch["speakers"] = batch["speakers"].clamp(max=1)
    model = units_training.InverterTraining(Inverter(config, training.vqvae.codebook, 2), training.vqvae)

    def score(training, batch):
        codes = torch.arange(10, device=batch["speakers"].device).repeat(3, 1)
        return training.inverter(codes, (batch["lengths"] + 3) // 4, batch["speakers"])

    return model, units_training.compute_loss, batch, score


SYSTEMS = {
    **{temporal: (sad, temporal) for temporal in ("cnn", "rnn", "seg_rnn")},
    "lcnn_blstm": (spoofing,),
    **{kind: (transducer, {"structure": kind}) for kind in ("monolingual", "vanilla", "onehot", "multi_softmax")},
    "multi_softmax_lsp": (transducer, {"structure": "multi_softmax", "lsp": True}),
    "multi_softmax_lid": (transducer, {"structure": "multi_softmax", "lid": True}),
    "vqvae": (vqvae, "transformer"),
    "vqvae_conv": (vqvae, "conv"),
    "inverter": (inverter,),
}


def make(name):
    """A system: (model, compute_loss, batch, score(model, batch))."""
    seed_everything(3)
    maker, *arguments = SYSTEMS[name]
    return maker(**arguments[0]) if arguments and isinstance(arguments[0], dict) else maker(*arguments)


def train(folder, model, compute_loss, batch, steps, bf16=False):
    """The losses of `steps` steps of the trainer on one batch."""
    losses = []

    def recorded(model, batch):
        loss, values = compute_loss(model, batch)
        losses.append(loss)
        return loss, values

    config = TrainConfig(max_steps=steps, lr=1e-3)
    batches = lambda epoch, consumed: iter([(["utterance"], batch)])  # noqa: E731
    trainer = Trainer(model, make_optimizer(model, config), batches, recorded, config, folder, log=logging.getLogger("x"))
    trainer.stepper.bf16 = bf16
    trainer.run()
    assert trainer.position.skipped == 0
    return losses


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_training_step_under_the_rules_of_cuda(name, tmp_path):
    model, compute_loss, batch, _ = make(name)
    streams = []
    for layer in model.modules():
        if isinstance(layer, (TransformerLayer, ResidualConvolution)):  # what these add to
            layer.register_forward_hook(lambda layer, inputs, output: streams.append((inputs[0].dtype, output.dtype)))
    with CudaRules() as rules:
        (loss,) = train(tmp_path / "bf16", model, compute_loss, batch, 1, bf16=True)
    assert rules.wrong == set()
    assert torch.bfloat16 in rules.cast  # autocast was on
    assert loss.dtype in (torch.float32, torch.float64)
    assert set(streams) <= {(torch.float32, torch.float32)} and bool(streams) == (name in ("vqvae", "vqvae_conv", "inverter"))
    model, compute_loss, batch, _ = make(name)
    (expected,) = train(tmp_path / "fp32", model, compute_loss, batch, 1)
    assert loss.item() == pytest.approx(expected.item(), rel=0.02)


@pytest.mark.parametrize("name", SYSTEMS)
def test_bf16_on_a_cpu(name, tmp_path):
    model, compute_loss, batch, _ = make(name)
    losses = train(tmp_path / "bf16", model, compute_loss, batch, 2, bf16=True)
    model, compute_loss, batch, _ = make(name)
    expected = train(tmp_path / "fp32", model, compute_loss, batch, 2)
    assert all(loss.dtype in (torch.float32, torch.float64) for loss in losses)
    torch.testing.assert_close(torch.stack(losses), torch.stack(expected), rtol=0.02, atol=0)


def test_a_sure_score_still_learns():
    logits = torch.tensor([[[6.3, -2.0]]], requires_grad=True)
    highest_score(logits.bfloat16()).sum().backward()
    assert logits.grad[0, 0, 0] == pytest.approx(0.998 * 0.0018, rel=0.1)


@pytest.mark.parametrize("name", ["vqvae", "vqvae_conv"])
def test_vectors_that_choose_codes_are_no_multiples_of_bf16(name):
    model, _, batch, score = make(name)
    with torch.no_grad(), CudaRules(), autocast("cpu"):
        latents = score(model.eval(), batch)
    assert latents.dtype == torch.float32 and not torch.equal(latents, latents.bfloat16().float())


def test_the_codes_an_inverter_learns_from_are_those_of_synthesis():
    model, compute_loss, batch, _ = make("inverter")
    vqvae, seen = model.frozen[0], []
    expected = vqvae.encode(batch["features"], batch["lengths"])[0]
    model.inverter.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    with CudaRules(), autocast("cpu"):
        compute_loss(model, batch)
    assert torch.equal(seen[0], expected)


def moved(batch, device):
    return {name: values.to(device) if torch.is_tensor(values) else values for name, values in batch.items()}


needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")]


@pytest.fixture
def exact(monkeypatch):
    """No TF32 in convolutions, which torch takes by default: products of 10 bits."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_gpu) for name in SYSTEMS])
def test_ten_steps_as_on_the_cpu(name, bf16, exact, tmp_path):
    model, compute_loss, batch, _ = make(name)
    expected = torch.stack(train(tmp_path / "cpu", model, compute_loss, batch, 10)).detach().double()
    model, compute_loss, batch, _ = make(name)
    model, batch = move(model, batch)
    losses = train(tmp_path / "gpu", model, compute_loss, batch, 10, bf16)
    assert all(loss.is_cuda for loss in losses)
    torch.testing.assert_close(torch.stack(losses).detach().double().cpu(), expected, rtol=0.05 if bf16 else 2e-3, atol=1e-4)


def move(model, batch):
    """Both on the GPU, with the VQ-VAE that an inverter does not own."""
    if isinstance(model, units_training.InverterTraining):
        model.frozen[0].cuda()
    return model.cuda(), moved(batch, "cuda")


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_gpu) for name in SYSTEMS])
@torch.no_grad()
def test_scores_and_decisions_as_on_the_cpu(name, exact):
    model, _, batch, score = make(name)
    expected = score(model.eval(), batch)
    model, batch = move(model, batch)
    scores = score(model, batch)
    assert scores.is_cuda
    torch.testing.assert_close(scores.cpu(), expected, rtol=1e-3, atol=1e-3)
    threshold = expected.median()
    sure = (expected - threshold).abs() > 2e-3
    assert torch.equal((scores.cpu() > threshold)[sure], (expected > threshold)[sure]) and sure.any()
    if name.startswith("vqvae"):
        codes, _ = model.vqvae.encode(batch["features"], batch["lengths"])
        expected, _ = model.vqvae.cpu().encode(batch["features"].cpu(), batch["lengths"].cpu())
        assert (codes.cpu() == expected).float().mean() > 0.95
