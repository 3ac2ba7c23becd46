"""References and hypotheses of different segments, channels and names: every word lands where sclite has it."""

import json

import pytest

from pyspeech.commands.score_wer import parser, read_names, read_utterances
from pyspeech.errors import UserError
from pyspeech.text.wer import score_utterances


def score(tmp_path, ref, hyp, *options):
    """(words, errors, names of the utterances); ref, hyp: (file name, text)."""
    paths = []
    for side, (name, text) in (("ref", ref), ("hyp", hyp)):
        path = tmp_path / side / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(str(path if "/" not in name else path.parent))
    options = parser().parse_args([*paths, *options])
    utterances = read_utterances(options, options.hypothesis, read_names(options))
    average = score_utterances(utterances)["average"]
    return average["words"], average["errors"], [name for name, *_ in utterances]


def line(recording, *words, duration=None):
    """A line of transcribe --format json, of words (text, start) in a segment; duration: None for that of the segment."""
    said = [{"word": word, "start": start, "end": start + 0.1} for word, start in words]
    start, end = said[0]["start"], said[-1]["end"]
    entry = {"recording": recording, "text": " ".join(word for word, _ in words), "language": "en-IN"}
    segments = [{"start": start, "end": end, "words": said}]
    return json.dumps({**entry, "duration": duration or end - start, "segments": segments}) + "\n"


TWO = "rec1 1 s 0.00 6.00 <o> a b c\nrec2 1 s 0.00 3.00 <o> d e\nrec2 1 s 3.00 6.00 <o> f g\n"


def test_each_recording_by_its_own_segments(tmp_path):
    """One of equal times does not make those of others missing."""
    other = "rec1 1 x 0.00 6.00 a b c\nrec2 1 x 0.10 2.70 d e\nrec2 1 x 3.20 5.90 f g\n"
    assert score(tmp_path, ("r.stm", TWO), ("h.stm", other)) == (7, 0, ["rec1-A-0.00-6.00", "rec2"])
    less = "rec1 1 x 0.00 6.00 a b c\nrec2 1 x 0.00 3.00 d e\n"
    assert score(tmp_path, ("r.stm", TWO), ("h.stm", less))[1:] == (
        2,
        ["rec1-A-0.00-6.00", "rec2-A-0.00-3.00", "rec2-A-3.00-6.00"],
    )
    assert score(tmp_path, ("r.stm", TWO), ("h", "rec2 d e f g\nrec1-A-0.00-6.00 a b c\n"))[:2] == (7, 0)
    assert score(tmp_path, ("r", "rec2 d e f g\nrec1-A-0.00-6.00 a b c\n"), ("h.stm", TWO))[:2] == (7, 0)
    ignored = "rec 1 s 0 1 a\nrec 1 s 1 2 IGNORE_TIME_SEGMENT_IN_SCORING\nrec 1 s 2 3 b\nrec 1 s 3 4 c\n"
    heard = "rec 1 s 0 1 a\nrec 1 s 1 2 x\nrec 1 s 3 4 c\n"  # nothing was recognised in one, something where it is not scored
    assert score(tmp_path, ("r.stm", ignored), ("h.stm", heard))[:2] == (3, 1)
    silent = "silent 1 s 0 1 a\nsilent 1 s 1 2 IGNORE_TIME_SEGMENT_IN_SCORING\n"
    (tmp_path / "hyp").mkdir(exist_ok=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "rec.stm").write_text("rec 1 s 0 1 a\n")
    (tmp_path / "folder" / "silent.stm").write_text("")
    assert score(tmp_path, ("r.stm", "rec 1 s 0 1 a\n" + silent), ("../folder/rec.stm", "rec 1 s 0 1 a\n"))[:2] == (2, 1)
    missing = score(tmp_path, ("r.stm", TWO), ("h.stm", "rec1 1 x 0.00 6.00 a b c\n"))
    assert missing[1:] == (4, ["rec1-A-0.00-6.00", "rec2-A-0.00-3.00", "rec2-A-3.00-6.00"])


def ctm(channel, start, words):
    return "".join(f"sw {channel} {start + 0.5 * place:.2f} 0.40 {word}\n" for place, word in enumerate(words))


def test_each_channel_by_itself(tmp_path):
    """Words of two channels that are spoken at once are not mixed by their times."""
    ref, hyp = ctm("A", 0.0, "abc") + ctm("B", 0.1, "xyz"), ctm("1", 0.15, "abc") + ctm("2", 0.1, "xyz")
    both = (6, 0, ["sw-A", "sw-B"])
    assert score(tmp_path, ("r.ctm", ref), ("h.ctm", hyp)) == both
    stm = [
        "sw {} s1 {:.2f} 2.0 <o> a b c\nsw {} s2 0.10 2.{} <o> x y z\n".format(*some)
        for some in (("A", 0, "B", 2), (1, 0.2, 2, 3))
    ]
    assert score(tmp_path, ("r.stm", stm[0]), ("h.stm", stm[1])) == both
    assert score(tmp_path, ("r.ctm", ref), ("h.stm", stm[1])) == both
    assert score(tmp_path, ("r.stm", stm[0]), ("h.ctm", hyp))[:2] == (6, 0)
    one = ctm("A", 0.0, "abc")
    assert score(tmp_path, ("r.ctm", one), ("h.ctm", one.replace(" A ", " 2 "))) == (3, 0, ["sw"])  # one channel is one
    assert score(tmp_path, ("r.ctm", ref), ("h", "sw a x b y c z\n")) == (6, 0, ["sw"])  # nothing tells them
    mixed = ref.replace(" B ", " A ")  # transcribe takes the mean of the channels
    assert score(tmp_path, ("r.ctm", ref), ("h.ctm", mixed)) == (6, 0, ["sw"])
    of = {"utt2lang": "sw hi-IN\n", "utt2spk": "sw-A one\nsw two\n"}
    for name, text in of.items():
        (tmp_path / name).write_text(text)
    options = [part for name in of for part in (f"--{name}", str(tmp_path / name))]
    options = parser().parse_args([str(tmp_path / "ref" / "r.ctm"), str(tmp_path / "hyp" / "h.stm"), *options])
    found = read_utterances(options, options.hypothesis, read_names(options))
    assert [row[:3] for row in found] == [("sw-A", "hi-IN", "one"), ("sw-B", "hi-IN", "two")]


def test_words_of_no_channel_go_by_time(tmp_path):
    stm = "c A s1 0.0 2.0 <o> a b\nc B s2 2.0 4.0 <o> x y\nc A s1 4.0 6.0 <o> c d\n"
    heard = line("c", ("a", 0.1), ("b", 0.5), ("x", 2.6), ("y", 3.0), ("c", 4.2), ("d", 5.7))
    assert score(tmp_path, ("r.stm", stm), ("h.json", heard))[:2] == (6, 0)


@pytest.mark.parametrize("sides", [("my call", "my_call"), ("my_call", "my call")])
def test_blanks_and_underscores(tmp_path, sides):
    assert score(tmp_path, ("r", f"{sides[0]}\ta b\n"), ("h", f"{sides[1]}\ta b\n")) == (2, 0, [sides[0]])
    if " " in sides[1]:
        assert score(tmp_path, ("r.stm", "my_call 1 s 0 2 a b\n"), ("h", "my call\ta b\n"))[:2] == (2, 0)
    several = "my call\ta\nmy_call\tb\n"
    assert score(tmp_path, ("r", several), ("h", several)) == (2, 0, ["my call", "my_call"])


def test_alternatives_of_ctm(tmp_path):
    marks = "rec A 0.0 0.2 hello\nrec A * * <ALT_BEGIN> 0.9\nrec A 0.5 0.2 um\nrec A * * <ALT>\n"
    marks += "rec A 0.5 0.2 @\nrec A * * <ALT_END>\nrec A 1.0 0.2 world\n"
    for words, errors in (("hello world", 0), ("hello um world", 0), ("hello ah world", 1)):
        assert score(tmp_path, ("r.ctm", marks), ("h", f"rec {words}\n"))[1] == errors
    with pytest.raises(UserError, match="h.ctm: rec: has alternatives; expected one reading, only references"):
        score(tmp_path, ("r", "rec hello world\n"), ("h.ctm", marks))
    with pytest.raises(UserError, match="h.trn: 1: has alternatives"):
        score(tmp_path, ("r", "1 hello world\n"), ("h.trn", "hello { word / world } (1)\n"))
    lines = marks.splitlines(keepends=True)
    for place, message in ((1, "r.ctm:3: <ALT> out of order"), (5, "r.ctm: rec: <ALT_BEGIN> without <ALT_END>")):
        with pytest.raises(UserError, match=message):
            score(tmp_path, ("r.ctm", "".join(lines[:place] + lines[place + 1 :])), ("h", "rec a\n"))


def test_tags_of_several_words_in_marked_texts(tmp_path):
    for name, text in (("r.trn", "hello [background noise] world (u1)\n"), ("r", "u1 hello [background noise] world\n")):
        assert score(tmp_path, (name, text), ("h", "u1 hello world\n"), "--normalize")[:2] == (2, 0)
    tagged = "hello { [loud laughter] / there } world (u1)\n"
    assert score(tmp_path, ("r.trn", tagged), ("h", "u1 hello world\n"), "--normalize")[:2] == (2, 0)


def test_best_of_alternatives_of_a_folder(tmp_path):
    """A folder of transcribe --nbest: the first alternative of each segment."""
    nbest = "0.00\t-24.7547\ta b c\n0.00\t-27.5689\ta b d\n2.50\t-3.0000\te\n2.50\t-4.0000\tf\n"
    assert score(tmp_path, ("r", "rec a b c e\n"), ("./rec.txt", nbest)) == (4, 0, ["rec"])
    positive = nbest.replace("-", "").replace("4.0000", "-inf")  # with a bonus for each symbol
    assert score(tmp_path, ("r", "rec a b c e\n"), ("./rec.txt", positive)) == (4, 0, ["rec"])
    assert score(tmp_path, ("r", "rec2 0.5 -1.0 e\n"), ("./rec2.txt", "0.5 -1.0 e\n"))[:2] == (3, 0)


def test_lines_of_a_stream(tmp_path):
    """Those of one recording go on; one that begins before the last has ended is there twice."""
    lines = line("rec", ("a", 0.1), ("b", 0.5)) + line("rec", ("c", 2.0)) + line("other", ("d", 0.0))
    assert score(tmp_path, ("r", "rec a b c\nother d\n"), ("h.json", lines)) == (4, 0, ["rec", "other"])
    with pytest.raises(UserError, match="h.json:3: rec is there twice"):
        score(tmp_path, ("r", "rec a b c\n"), ("h.json", lines.replace("other", "rec")))
    whole = line("rec", ("a", 0.1), duration=2.0) + line("rec", ("b", 2.5), duration=4.0)  # of two files of that name
    with pytest.raises(UserError, match="h.json:2: rec is there twice"):
        score(tmp_path, ("r", "rec a b c\n"), ("h.json", whole))
    with pytest.raises(UserError, match="h:2: rec is there twice; .*with -o or --format json"):
        score(tmp_path, ("r", "rec a b c\n"), ("h", "rec\ta b\nrec\tc\n"))
    with pytest.raises(UserError, match="h.json:1: not a line of transcribe"):
        score(tmp_path, ("r", "rec a b c\n"), ("h.json", lines.replace('"start": 0.1', '"start": null', 1)))


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("h.ctm", "rec A nan 0.2 a\n", "h.ctm:1: 'nan' is not a time; expected seconds"),
        ("h.ctm", "rec A 0.0 inf a\n", "'inf' is not a time"),
        ("h.ctm", "rec A 0.0 -0.5 a\n", "h.ctm:1: a duration of -0.5 s; expected 0 or more"),
        ("h.stm", "rec A s 5.0 2.0 a\n", "h.stm:1: its end, 2 s, is before its start, 5 s"),
    ],
)
def test_times(tmp_path, name, text, message):
    with pytest.raises(UserError, match=message):
        score(tmp_path, ("r", "rec a\n"), (name, text))


def test_names_as_others_write_them(tmp_path):
    own = "be e (my_call_(1))\n"
    assert score(tmp_path, ("r.trn", own), ("h", own)) == (2, 0, ["my_call_(1)"])
    assert score(tmp_path, ("r.trn", "ham / eggs (u1)\n"), ("h", "u1 ham / eggs\n"))[:2] == (3, 0)
    assert score(
        tmp_path, ("x.stm.filt", "rec 1 s 0 3 a b\nrec 1 s 3 6 c\n"), ("x.ctm.filt", "rec 1 0 1 a\nrec 1 1 1 b\nrec 1 4 1 c\n")
    )[:2] == (3, 0)
    mixed = "u1 a\tb\nu2 c\nu3 d\n"  # a tab between words, as Kaldi takes it
    assert score(tmp_path, ("r", "u1 a b\nu2 c\nu3 d\n"), ("h", mixed)) == (4, 0, ["u1", "u2", "u3"])
    stripped = "my rec\ta b\nother rec\n"  # an editor took the tab of the empty one
    assert score(tmp_path, ("r", "my rec\ta b\nother rec\tc\n"), ("h", stripped)) == (3, 1, ["my rec", "other rec"])
    assert score(tmp_path, ("r", "u1 a b\nu2 c d\n"), ("h", "u1\ta b\nu2 c d\n")) == (4, 0, ["u1", "u2"])
    unnamed = "rec A * * <ALT_BEGIN>\nrec A 0.5 0.2 a\nrec A * * <ALT>\nrec A 0.5 0.2 b\nrec A * * <ALT_END>\n"
    assert score(tmp_path, ("r", unnamed), ("h", "rec b\n"))[:2] == (1, 0)
