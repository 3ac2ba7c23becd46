"""Tags in transcripts: what is dropped, what stays, what is said."""

import pytest

from pyspeech.errors import UserError
from pyspeech.text.tags import DEFAULT_TAGS, Tags, most


@pytest.mark.parametrize(
    "text, expected",
    [
        ("<noise> एक दो <UNK>", "एक दो"),
        ("so [laughter] uh [laughter-yeah] [vocalized-noise].", "so uh yeah ."),
        ("[Noise][noise] a <hes><s> b", "a b"),
        ("एक<noise> दो", "एक दो"),
        ('he <foreign lang="Hindi"> namaste </foreign> said', "he namaste said"),
        ("++breath++ %hesitation, well (%hesitation) (( )) a (()) !SIL", ", well a"),
        ("{breath} hm {lipsmack}", "hm"),
        ("IGNORE_TIME_SEGMENT_IN_SCORING", ""),
        ("[background noise] hello [ noise ] < unk > <spoken noise> <b>", "hello"),
    ],
)
def test_tags_of_known_corpora_are_dropped(text, expected):
    assert Tags().drop(text) == expected


@pytest.mark.parametrize(
    "text",
    ["th[is]- is", "50 % of  it!", "a < b", "(aside) yes", "++i", "{ um / uh } so", "see [1", "10 > 5", "it's ~ 5"]
    + ["a < b and c > d", "5 < 6 but 7 > 3", "a <b and c > d", "a < b and c> d", "one ++ two ++ three"],
)
def test_what_people_say_stays_as_it_is(text):
    assert Tags().drop(text) == text


def test_a_list_of_ones_own_and_what_looks_like_a_tag():
    tags = Tags(["<noise>", "#*#", "<w *>=*"])
    assert tags.drop("<noise> one #cough# <w two> [laughter] <unk> %um {breath} ((so)) th[is]-") == (
        "one two [laughter] <unk> %um {breath} ((so)) th[is]-"
    )
    assert tags.dropped == {"<noise>": 1, "#cough#": 1, "<w two>": 1}
    assert tags.left == {"[laughter]": 1, "<unk>": 1, "%um": 1, "{breath}": 1, "((so))": 1, "[is]": 1}
    tags.drop("<noise>")
    assert most(tags.dropped, 2) == "<noise> (2), #cough# (1) and 1 more" and most(tags.left, 9).count(",") == 5
    assert Tags([]).drop("<noise> a") == "<noise> a"
    tags.drop("a < b and c > d")
    assert "< b and c >" not in tags.left
    tags = Tags()
    assert tags.drop("[horn]बस a {breath}b") == "[horn]बस a {breath}b"  # in a word: not dropped, but named
    assert tags.left == {"[horn]": 1, "{breath}": 1}


@pytest.mark.parametrize("pattern", ["", "*", "<*-*>", "<noise>=", "<noise>=*", "<*>=noise", "* *"])
def test_what_is_no_tag(pattern):
    with pytest.raises(UserError, match="expected a tag such as <noise>"):
        Tags([*DEFAULT_TAGS, pattern])
