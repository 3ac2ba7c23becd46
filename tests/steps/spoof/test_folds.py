"""Splits that leave out pages or families: what is in them, how even they are, and the lists that the recipe reads."""

import logging
from collections import Counter

import pytest
import soundfile

from local.add2022.labelled import as_utterances, find_utterances
from pyspeech.data.manifests import Utterance
from pyspeech.errors import UserError
from steps.spoof.folds import deal, family_of, family_splits, page_of, page_splits, smaller, write_list

PAGES = 23
FAMILIES = ("HiFi-GAN", "MelGAN, all kinds", "VITS", "WORLD")


def corpus(folder="/audio"):
    """Pages of 1 to 7 fakes and, but for every fourth, 2 to 4 genuine utterances of two speakers each."""
    found = []
    for page in range(PAGES):
        common = {"condition": "-", "page": f"page {page}"}
        for number in range(1 + page % 7):
            name, family = f"f{page}_{number}", FAMILIES[(page + number) % len(FAMILIES)]
            custom = {**common, "attack": f"{family} {page % 2}", "family": family, "original": f"g{page}_0"}
            found.append(Utterance(name, f"{folder}/{name}.wav", "fake", "en", "-", custom=custom))
        for number in range((page % 4 > 0) * (2 + page % 3)):
            name, custom = f"g{page}_{number}", {**common, "attack": "-", "original": f"g{page}_{number}"}
            found.append(Utterance(name, f"{folder}/{name}.wav", "genuine", "en", f"s{page}_{number % 2}", custom=custom))
    return found


def sets_of(split, utterances, key):
    """{set: {key of its utterances}}."""
    return {name: {key(one) for one in utterances if split.sets.get(one.id) == name and key(one)} for name in ("train", "eval")}


def test_each_page_is_left_out_once():
    utterances = corpus()
    splits = page_splits(utterances, 4)
    assert sorted(page for split in splits for page in split.held) == sorted({page_of(one) for one in utterances})
    for split in splits:
        pages = sets_of(split, utterances, page_of)
        assert pages["eval"] == set(split.held) and not pages["train"] & pages["eval"]
        assert split.sets.keys() == {one.id for one in utterances}
    for kind in ("genuine", "fake"):
        held = [sum(split.sets[one.id] == "eval" and one.text == kind for one in utterances) for split in splits]
        assert max(held) - min(held) <= 0.25 * sum(held) / len(held)


def test_each_family_is_left_out_once():
    utterances = corpus()
    splits = family_splits(utterances, 3)
    assert sorted(family for split in splits for family in split.held) == sorted(FAMILIES)
    tested = Counter()
    for split in splits:
        families = sets_of(split, utterances, family_of)
        assert families["eval"] == set(split.held) and not families["train"] & families["eval"]
        people = sets_of(split, utterances, lambda one: one.speaker if one.text == "genuine" else "")
        assert people["eval"] and not people["train"] & people["eval"]
        tested.update(name for name, part in split.sets.items() if part == "eval")
    assert set(tested.values()) == {1} and len(tested) == len(utterances)


def test_folds_do_not_depend_on_the_order():
    utterances = corpus()
    assert page_splits(utterances[::-1], 4) == page_splits(utterances, 4)
    assert deal(utterances[::-1], page_of, 5) == deal(utterances, page_of, 5)


def test_smaller_training_sets_are_nested():
    utterances = corpus()
    whole = page_splits(utterances, 4)[1]
    before = set()
    for size in (1, 3, 9):
        split = smaller(whole, utterances, size)
        pages = sets_of(split, utterances, page_of)
        assert len(pages["train"]) == size and before < pages["train"] and pages["eval"] == set(whole.held)
        assert {one.text for one in utterances if split.sets.get(one.id) == "train"} == {"genuine", "fake"}
        assert split.name == f"pages-2-from-{size}" and split.held == whole.held
        before = pages["train"]
    with pytest.raises(UserError, match="--sizes 23: fold 2 has 1[78] pages for training; expected fewer"):
        smaller(whole, utterances, PAGES)


def test_too_few_groups():
    with pytest.raises(UserError, match="--folds 5: the corpus has 4 groups to leave out"):
        family_splits(corpus(), 5)


def test_the_list_is_what_the_recipe_reads(tmp_path):
    utterances = corpus(tmp_path)
    for one in utterances:
        soundfile.write(one.audio, [0.1, -0.1], 16000)
    split = smaller(page_splits(utterances, 4)[0], utterances, 5)
    write_list(tmp_path / "a list.csv", utterances, split)
    files, problems = find_utterances(tmp_path / "a list.csv", logging.getLogger())
    found = {one.id: one for one in as_utterances(files)}
    assert not problems and found.keys() == split.sets.keys()
    for one in utterances:
        if one.id in found:
            read = found[one.id]
            assert (read.audio, read.text, read.split) == (one.audio, one.text, split.sets[one.id])
            assert (read.speaker, read.language, read.custom) == (one.speaker, one.language, one.custom)
