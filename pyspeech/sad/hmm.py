"""Viterbi smoothing of frame scores with a two-class hidden Markov model.

Implements the decoder at the end of section 2 of Heitkaemper, Schmalenstroeer and Haeb-Umbach, "Statistical and neural
network based speech activity detection in non-stationary acoustic environments" (Interspeech 2020): 5 consecutive noise
states, then 5 consecutive speech states, in a ring; each state is kept with probability 0.9 and left for the next one
with probability 0.1. So every stretch of noise or speech lasts at least 5 frames, and a short burst must earn its two
changes of class. All states of a class share its emission, so only the log-likelihood ratio of the classes matters.

`viterbi` works on all chunks of a recording at once and equals the frame-by-frame `viterbi_sequential` exactly:
- Scores are rounded to multiples of 2^-20, so every sum is exact in float64, however the recording is cut.
- Forward: each chunk starts from a guess of its initial score vector; afterwards a chunk whose guess differs from the
  vector its predecessor ended with starts anew from that vector, until none differs. The first chunk's start is the true
  one, so by induction all are. Survivors merge within some dozen frames, so two or three rounds are the rule.
- Backward: each chunk is traced back from all of its possible last states; the chain of chunks then picks one.
"""

from dataclasses import dataclass

import numpy as np

CHUNK = 250  # frames: short enough for many chunks side by side, long enough for survivors to merge within one
RESOLUTION = 2.0 ** -20
LARGEST_RATIO = 1e4  # nats; keeps the sums of a chunk far below 2^53 * RESOLUTION, and replaces an infinite ratio


@dataclass
class HmmConfig:
    states: int = 5  # per class
    stay: float = 0.9  # probability of staying in a state; 1 - stay is that of moving to the next one

    def __post_init__(self):
        if self.states < 1 or not 0.0 < self.stay < 1.0:
            raise ValueError(f"expected states >= 1 and 0 < stay < 1, found states={self.states}, stay={self.stay}")


def viterbi(llr, config=None):
    """The most probable class of every frame.

    llr: (T,) log-likelihood ratio log p(x_t | speech) - log p(x_t | noise) per frame, natural logarithm; infinite values
        are allowed, NaN is a ValueError. For a network: its log posterior odds (less the log prior odds, if wanted).
    Returns bool (T,), True for speech. Every state is equally probable before the first frame.
    """
    config = config or HmmConfig()
    llr = _checked(llr)
    num_frames = len(llr)
    if num_frames == 0:
        return np.zeros(0, bool)
    num_chunks = -(-num_frames // CHUNK)
    padded = np.zeros(num_chunks * CHUNK)
    padded[:num_frames] = llr
    chunks = np.ascontiguousarray(padded.reshape(num_chunks, CHUNK).T)  # (CHUNK, K): a row is one step of all chunks

    num_states = 2 * config.states
    moved = np.zeros((CHUNK, num_states, num_chunks), bool)
    start = np.zeros((num_states, num_chunks))
    end = np.zeros((num_states, num_chunks))
    pending = np.arange(num_chunks)
    while len(pending):
        end[:, pending], moved[:, :, pending] = _forward(chunks[:, pending], start[:, pending], config)
        expected = np.concatenate([np.zeros((num_states, 1)), end[:, :-1]], axis=1)
        pending = np.flatnonzero((expected != start).any(0))
        start[:, pending] = expected[:, pending]

    # The padded frames come after the last real one and its scores are needed before them.
    rest = num_frames - (num_chunks - 1) * CHUNK
    last_scores, _ = _forward(chunks[:rest, -1:], start[:, -1:], config)
    return _trace_back(moved, rest, int(last_scores[:, 0].argmax()), config)[:num_frames]


def viterbi_sequential(llr, config=None):
    """The same as `viterbi`, frame by frame: the plain form that tests compare with."""
    config = config or HmmConfig()
    llr = _checked(llr)
    num_states = 2 * config.states
    stay, move = _transition_scores(config)
    scores = np.zeros(num_states)
    moved = np.zeros((len(llr), num_states), bool)
    for t, ratio in enumerate(llr):
        arriving = np.roll(scores, 1) + move
        scores = scores + stay
        moved[t] = arriving > scores
        scores = np.maximum(arriving, scores)
        scores[config.states:] += ratio
        scores -= scores.max()
    decisions = np.zeros(len(llr), bool)
    state = int(scores.argmax())
    for t in range(len(llr) - 1, -1, -1):
        decisions[t] = state >= config.states
        state = (state - moved[t, state]) % num_states
    return decisions


def _checked(llr):
    llr = np.asarray(llr, np.float64)
    if llr.ndim != 1:
        raise ValueError(f"expected one ratio per frame, (T,), found an array of shape {llr.shape}")
    if np.isnan(llr).any():
        raise ValueError(f"the log-likelihood ratio is NaN in {int(np.isnan(llr).sum())} of {len(llr)} frames")
    return _rounded(np.clip(llr, -LARGEST_RATIO, LARGEST_RATIO))


def _rounded(x):
    return np.round(x / RESOLUTION) * RESOLUTION


def _transition_scores(config):
    return _rounded(np.log(config.stay)), _rounded(np.log1p(-config.stay))


def _forward(llr, scores, config):
    """All chunks one step at a time. llr (steps, K), scores (S, K) -> end scores (S, K), largest 0; moved (steps, S, K)."""
    stay, move = _transition_scores(config)
    moved = np.empty((len(llr),) + scores.shape, bool)
    scores = scores.copy()
    arriving = np.empty_like(scores)
    for t, ratios in enumerate(llr):
        np.add(scores[:-1], move, out=arriving[1:])
        np.add(scores[-1], move, out=arriving[0])
        scores += stay
        np.greater(arriving, scores, out=moved[t])
        np.maximum(arriving, scores, out=scores)
        scores[config.states:] += ratios
    return scores - scores.max(0), moved


def _trace_back(moved, rest, last_state, config):
    """Decisions (K * CHUNK,) from the moves (CHUNK, S, K), the last chunk holding `rest` frames and ending in last_state."""
    length, num_states, num_chunks = moved.shape
    moved[rest:, :, -1] = False  # padding: the state before it is the state after it
    chunk_index = np.arange(num_chunks)
    # Which state each chunk was entered from, for every state it may end in.
    entered = np.tile(np.arange(num_states)[:, None], (1, num_chunks))
    for t in range(length - 1, -1, -1):
        entered -= moved[t, entered, chunk_index]
        entered[entered < 0] += num_states
    state = np.empty(num_chunks, int)
    state[-1] = last_state
    for k in range(num_chunks - 1, 0, -1):
        state[k - 1] = entered[state[k], k]

    decisions = np.empty((length, num_chunks), bool)
    for t in range(length - 1, -1, -1):
        decisions[t] = state >= config.states
        state -= moved[t, state, chunk_index]
        state[state < 0] += num_states
    return decisions.T.ravel()
