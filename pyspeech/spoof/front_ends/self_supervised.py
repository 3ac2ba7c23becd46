"""A pretrained self-supervised encoder (wav2vec 2.0, HuBERT) as front end; a choice, not the paper's.

    samples -> encoder -> one layer, or a learnt weighted sum of all (as in SUPERB, Yang et al. 2021) -> num_bins values

The encoder is a bundle of torchaudio, or a folder with config.json, the arguments of torchaudio.models.wav2vec2_model and
optionally "normalize_waveform", and weights.pt, its state dict. Model files hold the weights of a fine-tuned encoder. Those
of a frozen one they refer to, by its name and a digest.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from pyspeech.compat import autocast, is_autocast, load_checkpoint
from pyspeech.errors import DownloadError, UserError, requirement
from pyspeech.spoof.config import BUNDLES, LogMelConfig
from pyspeech.spoof.front_ends import FrontEnd

NORMALIZE = "normalize_waveform"  # to mean 0 and variance 1 over a piece
# Of weight normalisation: names in torch 2, and in torch 1, which both can load.
NAMES = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}


class SelfSupervised(FrontEnd):
    """samples (B, N) at 16 kHz -> (B, num_frames(N), num_bins) float32."""

    def __init__(self, config: LogMelConfig, saved: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.frozen = not config.fine_tuned
        if saved and config.fine_tuned:  # the weights are in the model file
            architecture, weights = saved["architecture"], None
        else:
            architecture, weights = read_pretrained(config.pretrained)
        self._saved: dict[str, Any] = {"digest": digest(weights)} if weights and self.frozen else {"architecture": architecture}
        if saved and self.frozen and saved["digest"] != self._saved["digest"]:
            raise DownloadError(
                f"features.pretrained={config.pretrained}: its weights have digest {self._saved['digest'][:12]}, but the "
                f"detector was trained with {saved['digest'][:12]}; restore those"
            )
        encoder = build(config.pretrained, architecture, weights)
        layers: Any = encoder.encoder.transformer.layers
        requirement("features", config)("layer", config.layer <= len(layers), f"0 to {len(layers)}, the encoder's layers")
        encoder.aux, encoder.encoder.transformer.layers = None, layers[: config.layer or len(layers)]
        self.normalize = architecture.get(NORMALIZE, False)
        self.mix = torch.nn.Parameter(torch.zeros(1 if config.layer else len(layers)))
        self.project = torch.nn.Linear(encoder.encoder.transformer.layer_norm.normalized_shape[0], config.num_bins)
        if self.frozen:  # in a list: neither its weights nor its mode are the module's
            self._frozen = [encoder.requires_grad_(False).eval()]
        else:
            self.encoder = encoder
            self._register_state_dict_hook(_rename)

    def _apply(self, fn: Any, *arguments: Any) -> SelfSupervised:
        if self.frozen:
            self._frozen[0]._apply(fn)
        return super()._apply(fn, *arguments)

    @property
    def _convolutions(self):
        encoder = self._frozen[0] if self.frozen else self.encoder
        return [(layer.conv.kernel_size[0], layer.conv.stride[0]) for layer in encoder.feature_extractor.conv_layers]

    @property
    def shift(self) -> int:
        return math.prod(stride for _, stride in self._convolutions)

    def num_frames(self, num_samples: int) -> int:
        for kernel, stride in self._convolutions:
            num_samples = max(0, (num_samples - kernel) // stride + 1)
        return num_samples

    def saved(self) -> dict[str, Any]:
        return self._saved

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        if self.normalize:
            samples = functional.layer_norm(samples, samples.shape[1:])
        encoder = self._frozen[0] if self.frozen else self.encoder
        in_half = samples.is_cuda and is_autocast(samples.device)  # torch 1 has no group norm in bf16 on a CPU
        with autocast(samples.device, in_half), torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            layers, _ = encoder.extract_features(samples)
        layers = torch.stack([functional.layer_norm(layer, layer.shape[2:]) for layer in layers[-len(self.mix) :]], dim=-1)
        return self.project((layers * self.mix.softmax(dim=0)).sum(dim=-1)).float()


def read_pretrained(name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read (architecture, weights) of a bundle of torchaudio or of a folder; DownloadError where they cannot be had."""
    if name in BUNDLES:
        import torchaudio

        bundle = getattr(torchaudio.pipelines, name)
        try:
            return {**bundle._params, NORMALIZE: BUNDLES[name]}, bundle._get_state_dict(None)
        except (OSError, http.client.HTTPException) as error:
            raise DownloadError(
                f"features.pretrained={name}: cannot be downloaded ({error}); copy {bundle._path} to "
                f"{torch.hub.get_dir()}/checkpoints from a machine with a network, or name the folder of a checkpoint"
            ) from None
    try:
        architecture = json.loads((Path(name) / "config.json").read_text(encoding="utf-8"))
        return dict(architecture), load_checkpoint(Path(name) / "weights.pt")
    except (OSError, ValueError, TypeError, UserError) as error:
        raise DownloadError(
            f"features.pretrained={name}: {error}; expected {', '.join(BUNDLES)} or a folder with config.json, the arguments "
            "of torchaudio.models.wav2vec2_model, and weights.pt, its state dict"
        ) from None


def build(name: str, architecture: dict[str, Any], weights: dict[str, torch.Tensor] | None) -> Any:
    """Build the torchaudio.models.Wav2Vec2Model of an architecture; weights: None for random ones."""
    from torchaudio.models import wav2vec2_model

    try:
        encoder: Any = wav2vec2_model(**{key: value for key, value in architecture.items() if key != NORMALIZE})
        if weights is not None:
            encoder.load_state_dict(weights)
        for module in (*encoder.feature_extractor.conv_layers, encoder.encoder.transformer.pos_conv_embed):
            module.register_forward_hook(_keep_layout)
        return encoder
    except (TypeError, ValueError, AttributeError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"features.pretrained={name}: weights.pt and config.json do not fit each other: {reason}") from None


def _keep_layout(module, inputs, output):
    """Give the gradient of a GELU's output the layout of that output: torch 1 on a CPU computes garbage from another one."""
    values = output[0] if isinstance(output, tuple) else output
    if values.requires_grad:
        size, strides = values.size(), values.stride()
        values.register_hook(lambda grad: grad.new_empty(size).as_strided(size, strides).copy_(grad))


def digest(weights: dict[str, torch.Tensor]) -> str:
    """SHA-256 of the names and values of weights, whatever file they are in."""
    found = hashlib.sha256()
    for name, values in sorted(weights.items()):
        found.update(f"{name} {tuple(values.shape)}\n".encode())
        found.update(values.detach().cpu().float().contiguous().numpy().data)
    return found.hexdigest()


def _rename(module, state, prefix, metadata):
    """The names of torch 1 in a state dict, so that both read it."""
    for name in list(state):
        for new, old in NAMES.items():
            if name.startswith(prefix) and name.endswith(new):
                state[name.removesuffix(new) + old] = state.pop(name)
