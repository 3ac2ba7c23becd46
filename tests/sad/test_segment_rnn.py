"""The fast segment RNN against every segment through the GRU, and the any-segment rule against its definition."""

import pytest
import torch
from torch.nn import functional

from pyspeech.sad.segment_rnn import any_segment, last_outputs, num_segments


def last_outputs_plain(features: torch.Tensor, gru: torch.nn.GRU, length: int, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every segment through `gru`, one layer, bidirectional, batch_first: features (B, T, D), T > 0, continued with zeros.

    Returns the outputs at the segments' last frames, forward and backward direction: two of (B, M, H).
    """
    batch, num_frames, _ = features.shape
    count = num_segments(num_frames, length, shift)
    segments = functional.pad(features, (0, 0, 0, (count - 1) * shift + length - num_frames)).unfold(
        1, length, shift
    )  # (B, M, D, L)
    outputs, _ = gru(segments.reshape(batch * count, -1, length).transpose(1, 2))
    return outputs[:, -1].reshape(batch, count, 2, gru.hidden_size).unbind(2)


def make_gru(inputs=16, hidden=24):
    torch.manual_seed(1)
    return torch.nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)


@pytest.mark.parametrize("shift", [1, 2, 5, 7])
@pytest.mark.parametrize("length", [1, 5, 10, 25])
@pytest.mark.parametrize("num_frames", [1, 4, 26, 143])
def test_fast_form_equals_plain_form(num_frames, length, shift):
    gru = make_gru()
    features = 3 * torch.randn(3, num_frames, 16)
    for fast, plain in zip(
        last_outputs(features, gru, length, shift), last_outputs_plain(features, gru, length, shift), strict=True
    ):
        assert fast.shape == plain.shape == (3, num_segments(num_frames, length, shift), 24)
        assert torch.allclose(fast, plain, atol=1e-5)


@pytest.mark.parametrize("length", [5, 10, 25])
@pytest.mark.parametrize("shift", [1, 5])
def test_fast_form_at_the_papers_size(length, shift):
    gru = make_gru(64, 128)
    features = torch.randn(2, 400, 64)
    with torch.no_grad():
        for fast, plain in zip(
            last_outputs(features, gru, length, shift), last_outputs_plain(features, gru, length, shift), strict=True
        ):
            assert torch.allclose(fast, plain, atol=1e-5)


@pytest.mark.parametrize("length, shift", [(5, 1), (10, 5), (25, 1)])
def test_gradients_are_equal(length, shift):
    gru = make_gru()
    gradients = []
    for form in (last_outputs, last_outputs_plain):
        torch.manual_seed(2)
        features = torch.randn(2, 60, 16, requires_grad=True)
        forward, backward = form(features, gru, length, shift)
        weights = torch.randn(forward.shape)
        ((forward * weights).sum() + (backward**2).sum()).backward()
        gradients.append([features.grad] + [parameter.grad.clone() for parameter in gru.parameters()])
        gru.zero_grad()
    for fast, plain in zip(*gradients, strict=True):
        assert torch.allclose(fast, plain, rtol=1e-4, atol=1e-5 * plain.abs().max().item())


def test_utterances_of_a_batch_do_not_see_each_other():
    gru = make_gru()
    features = torch.randn(3, 40, 16)
    together = last_outputs(features, gru, 5, 2)
    for row in range(3):
        for both, single in zip(together, last_outputs(features[row : row + 1], gru, 5, 2), strict=True):
            assert torch.allclose(both[row], single[0], atol=1e-6)


def test_number_of_segments():
    assert [num_segments(frames, 5, 1) for frames in (1, 5, 6, 10)] == [1, 1, 2, 6]
    assert [num_segments(frames, 10, 5) for frames in (10, 11, 15, 16)] == [1, 2, 2, 3]
    assert num_segments(torch.tensor([1, 10, 11, 15, 16]), 10, 5).tolist() == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("length, shift", [(1, 1), (5, 1), (10, 5), (25, 1), (25, 10), (5, 5), (3, 4)])
@pytest.mark.parametrize("num_frames", [1, 4, 26, 143])
def test_any_segment_is_the_maximum_over_the_segments_with_a_frame(length, shift, num_frames):
    torch.manual_seed(3)
    scores = torch.rand(2, num_segments(num_frames, length, shift)) + 1e-3
    frames = any_segment(scores, length, shift, num_frames)
    assert frames.shape == (2, num_frames)
    for frame in range(num_frames):
        within = [i for i in range(scores.shape[1]) if i * shift <= frame < i * shift + length]
        expected = scores[:, within].amax(1) if within else torch.zeros(2)
        assert torch.equal(frames[:, frame], expected)


def test_any_segment_and_threshold_commute():
    scores = torch.tensor([[0.2, 0.7, 0.1, 0.1]])
    decided = any_segment((scores > 0.5).float(), 3, 1, 6) > 0
    assert decided.tolist() == (any_segment(scores, 3, 1, 6) > 0.5).tolist() == [[False, True, True, True, False, False]]
