"""Steps of the systems of one language."""

import pytest
from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

from pyspeech.training.config import TrainConfig
from steps.asr.train import shares_of_steps, shorter


@pytest.fixture
def corpus(tmp_path):
    """2 and 6 minutes of two languages to train on, and dev data that do not count."""

    def cut(name, language, minutes):
        recording = Recording(name, [], 16000, 960000 * minutes, 60.0 * minutes)
        supervision = SupervisionSegment(name, name, 0, 60.0 * minutes, text="a", language=language)
        return MonoCut(name, 0, 60.0 * minutes, 0, supervisions=[supervision], recording=recording)

    CutSet.from_cuts([cut("a", "gu-IN", 2), cut("b", "ta-IN", 5), cut("c", "ta-IN", 1)]).to_file(tmp_path / "train.jsonl.gz")
    for name in ("dev", "test"):
        CutSet.from_cuts([cut("d", "gu-IN", 9)]).to_file(tmp_path / f"{name}.jsonl.gz")
    return tmp_path


def test_steps_by_hours_are_the_same_number_of_epochs(corpus):
    assert shares_of_steps(0.5, corpus, by_hours=False) == {"gu-IN": 0.5, "ta-IN": 0.5}
    shares = shares_of_steps(1.0, corpus, by_hours=True)
    assert shares == pytest.approx({"gu-IN": 0.25, "ta-IN": 0.75})
    # batches of 30 s: a multilingual system's 320 steps are 20 epochs of 8 minutes; those of each language are 20 too
    epochs = [320 * shares[language] * 0.5 / minutes for language, minutes in (("gu-IN", 2), ("ta-IN", 6))]
    assert epochs == pytest.approx([20, 20])


def test_a_share_of_the_steps_is_one_of_the_warm_up_and_the_validations_too():
    train = shorter(TrainConfig(max_steps=200, valid_every=40, warmup_steps=2, lr=0.01), 0.25, lr=0.5)
    assert (train.max_steps, train.valid_every, train.warmup_steps, train.lr) == (50, 10, 1, 0.005)
