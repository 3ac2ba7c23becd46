"""ARPA files: what is read and written, in SRILM's form, and what is wrong with bad ones."""

import gzip

import numpy as np
import pytest

from pyspeech.errors import UserError
from pyspeech.text.arpa import read_arpa, write_arpa

SRILM = """
\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1.0\t</s>
-99\t<s>\t-0.30103
-0.5\ta\t-0.2
-0.7\tB-क

\\2-grams:
-0.25\t<s> a
-0.125\ta B-क

\\end\\
"""


def test_read_and_written_again(tmp_path):
    (tmp_path / "a.arpa").write_text(SRILM, encoding="utf-8")
    arpa = read_arpa(tmp_path / "a.arpa")
    assert arpa.words == ["</s>", "<s>", "a", "B-क"] and arpa.order == 2
    assert arpa.orders[0].log_probs.tolist() == [-1.0, -99.0, -0.5, -0.7]
    assert arpa.orders[0].backoffs.tolist() == [0.0, -0.30103, -0.2, 0.0]
    assert arpa.orders[1].words.tolist() == [[1, 2], [2, 3]] and arpa.orders[1].log_probs.tolist() == [-0.25, -0.125]
    write_arpa(tmp_path / "b.arpa", arpa)
    with gzip.open(tmp_path / "c.arpa.gz", "wt", encoding="utf-8") as stream:
        stream.write((tmp_path / "b.arpa").read_text(encoding="utf-8"))
    write_arpa(tmp_path / "d.arpa.gz", arpa)
    assert gzip.decompress((tmp_path / "d.arpa.gz").read_bytes()) == (tmp_path / "b.arpa").read_bytes()
    for name in ("b.arpa", "c.arpa.gz", "d.arpa.gz"):
        again = read_arpa(tmp_path / name)
        assert again.words == arpa.words
        for one, other in zip(again.orders, arpa.orders, strict=True):
            assert all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("words", "log_probs", "backoffs"))


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("\\data\\", "", r"ends at line 16; expected \\data\\: the file is not ARPA, or not whole"),
        ("\\end\\", "", r"expected \\end\\"),
        ("ngram 2=2", "ngram 2=3", r"line 16: 1 fields; expected log probability, 2 words, back-off"),
        ("ngram 2=2", "ngram 3=2", "line 4: 'ngram3=2'; expected 'ngram 2=N' or"),
        ("ngram 2=2", "ngram 2=1", r"line 14: '-0.125.+a B-क'; expected \\end\\"),
        ("-0.5\ta", "-0.5\tB-क", "line 10: 1-grams that are there twice"),
        ("-0.25", "zero", "line 13: could not convert string to float: 'zero'"),
        ("-0.25", "0.25", "2-grams with log probabilities above 0"),
        ("ngram 2=2", f"ngram 2={10**14}", f"line 12: {10**14} 2-grams, by the header, are more than memory holds"),
        ("ngram 2=2", f"ngram 2={10**20}", f"line 12: {10**20} 2-grams, by the header, are more than memory holds"),
        ("<s> a", "<s> b", "line 13: b is not among the 1-grams"),
    ],
)
def test_a_bad_file_is_named(tmp_path, old, new, message):
    path = tmp_path / "a.arpa"
    path.write_text(SRILM.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        read_arpa(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
