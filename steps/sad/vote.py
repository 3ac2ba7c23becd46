"""Majority voting of networks (Heitkaemper et al. 2020, section 4.3), with thresholds for what is voted on."""
from steps.cuts import load_cuts
from steps.sad.detect import labels_of_dev, read_scores

STEPS = 41  # thresholds that are tried for a network
ROUNDS = 4  # over the networks, at most


def tune_vote(exp, voters, stft, collar):
    """The voters with thresholds of a low DCF of their majority on dev, and that DCF, a fraction.

    voters: (folder of the scores, threshold, smoothing) of each network, tuned by itself. A threshold need not be where its
    network is best alone, for more than half have to agree. The best of several descents: from these thresholds, and from
    each network alone, so that the majority is no worse on dev than any of them. stft: StftConfig, whose frames the scores
    are of; collar: seconds.
    """
    starts = [voters, *(alone(voters, index) for index in range(len(voters)))]
    return min((descend(exp, start, stft, collar) for start in starts), key=lambda found: found[1])


def alone(voters, index):
    """Voters whose majority, for an odd number of them, is what one of them says: of the others, every second always says
    speech, and the rest never do."""
    others = [(scores, float(number % 2), smoothing)
              for number, (scores, _, smoothing) in enumerate(voters[:index] + voters[index + 1:])]
    return [*others[:index], voters[index], *others[index:]]


def descend(exp, voters, stft, collar):
    """Set the threshold of one voter after the other to the best on dev beside the others', until none changes."""
    import numpy as np

    from pyspeech.sad.thresholds import sweep_decisions

    dev, voters = load_cuts(exp.dir / "corpus", "dev"), list(voters)
    for _ in range(ROUNDS):
        before = list(voters)
        for index, (scores, threshold, smoothing) in enumerate(voters):
            others = voters[:index] + voters[index + 1:]
            tried = np.append(threshold, np.linspace(0, 1, STEPS))  # the present one first: of equals, it stays
            decisions = (votes(cut, voters[index], others, tried) for cut in dev)
            (found,) = sweep_decisions(decisions, tried, *labels_of_dev(exp, dev), [collar], stft.frame_shift,
                                       stft.frame_offset)
            voters[index] = (scores, found.threshold, smoothing)
        if voters == before:
            break
    return voters, found.best_dcf


def votes(cut, voter, others, thresholds):
    """Yield the majority for a stream of dev at each threshold of one voter, those of the others as they are: bool (T,)."""
    from pyspeech.sad.smoothing import decide, decide_thresholds, majority

    fixed = [decide(read_scores(scores / "dev", cut), *how) for scores, *how in others]
    scores, _, smoothing = voter
    for decided in decide_thresholds(read_scores(scores / "dev", cut), thresholds, smoothing):
        yield majority([*fixed, decided])
