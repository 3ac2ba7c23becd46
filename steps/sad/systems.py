"""The systems of egs/fearless, by name."""

from collections.abc import Iterable, Sequence

from pyspeech.sad.registry import NETWORKS

SAMPLING_RATE = 8000  # Hz, of the corpora and so of every detector; streams of other rates are resampled on reading

PAPER = [name for name, network in NETWORKS.items() if any(network.paper)]  # the networks that are trained by default
VOTES = ["vote", "vote_tuned"]  # the majority of the networks, by their own thresholds and by thresholds tuned together
STATISTICAL = {"statistical": False, "voicing": True}  # the paper's statistical SAD and ours: whether it looks at the voicing
TUNED = [*STATISTICAL, "baseline"]  # nothing to train, but a threshold from dev
WEBRTC = [f"webrtc{mode}" for mode in range(4)]  # the number is its aggressiveness
FIXED = ["untuned", "voicing_untuned", "threshold", *WEBRTC]  # not even a threshold


def votes_of(systems: Sequence[str]) -> list[str]:
    """Select the votes of these networks: none of one network, which would be its own majority."""
    return VOTES if len(systems) > 1 else []


def pattern(systems: Iterable[str]) -> str:
    """One path of each system, as the engine's patterns write it: {cnn,rnn}."""
    return "{" + ",".join(systems) + "}"
