"""What is held out: whole speakers where five are named, whatever has no speaker beside them."""

import pytest

from local.splits import hold_out
from pyspeech.data.manifests import Utterance


def spoken(speakers):
    """An utterance of each speaker, None or "" for none; all texts differ."""
    return [Utterance(f"u{n}", "", f"these are some words {n}", "hi-IN", name) for n, name in enumerate(speakers)]


@pytest.mark.parametrize("nameless", [[None], [None, None], ["", None, None]])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_utterances_without_a_speaker_stay_in_training(nameless, split):
    found = hold_out(spoken([*(f"s{n % 8}" for n in range(80)), *nameless]), 0.1, split)
    held = {one.speaker for one in found if one.split == split}
    assert held and not held & {one.speaker for one in found if one.split == "train"}
    assert all(one.split == "train" for one in found if not one.speaker)


def test_sentences_where_fewer_than_five_are_named():
    found = hold_out(spoken([*(f"s{n % 4}" for n in range(40)), *[None] * 40]), 0.1)
    held = [one for one in found if one.split == "dev"]
    assert len(held) == 8
    unnamed = hold_out(spoken([None] * 80), 0.1)
    assert [one.id for one in held] == [one.id for one in unnamed if one.split == "dev"]


def test_few_named_speakers_do_not_decide():
    found = hold_out(spoken([*(f"s{n}" for n in range(10)), *[None] * 190]), 0.1)
    assert sum(one.split == "dev" for one in found) == 20
