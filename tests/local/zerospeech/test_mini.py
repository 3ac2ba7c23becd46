"""The mini corpus for unit discovery: what is in its sets and its items, on clips that eSpeak NG speaks."""

import logging
from collections import defaultdict

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts

from local.synthesis import espeak
from local.zerospeech import mini as zerospeech_mini
from pyspeech.errors import UserError

pytestmark = pytest.mark.network  # the phones are those of eSpeak NG, which comes in packages

log = logging.getLogger("test")
TEXTS = [
    "Co je to za divnou loď?",
    "Konečně vidím nějakou novou lebku.",
    "Ještě kousek, ať tudy můžu projet.",
    "Podáš mi, prosím tě, to koště?",
    "Opatrně, ať jí neublížíš.",
    "Neotravuj pořád.",
    "To je jedno.",
    "Jak můžeš vědět, co je rozumné?",
    "Nevím, ale je to odporné.",
    "Co by to mohlo být?",
    "To je divná kost.",
    "Konečně vidím novou loď.",
    "Jak to můžeš vědět?",
    "Podáš mi to?",
    "To je ale lebka!",
    "Kudy pojedeme?",
]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """The same texts, and two that fit no clip, by two voices."""
    folder, found = tmp_path_factory.mktemp("clips"), {}
    for voice, variant in (("fillets-cs-small", "f2"), ("fillets-cs-big", "m1")):
        spoken = espeak.synthesize([(espeak.Voice("cs", variant), text) for text in [*TEXTS, "Ano.", "Loď LC-10."]])
        found[voice] = []
        for number, (samples, text) in enumerate(zip(spoken, [*TEXTS, 20 * "Mnoho. ", "Loď LC-10."], strict=True)):
            path = folder / f"level{number % 2}" / "cs" / f"a-{variant}-{number:02d}.ogg"
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(number).normal(0, 3, len(samples))
            soundfile.write(str(path), (samples + noise) / 32768.0, espeak.RATE, format="OGG", subtype="VORBIS")
            found[voice].append((path, text))
    return found


@pytest.fixture(scope="module")
def corpus(clips, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    counts = zerospeech_mini.prepare(folder, log, clips=clips)
    cuts = {part: read_cuts(folder, part) for part in ("unit", "voice", "test")}
    return folder, cuts, counts


def lines(path):
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


def test_sets(corpus):
    folder, cuts, counts = corpus
    assert counts == {**{part: len(own) for part, own in cuts.items()}, "items": len(lines(folder / "abx.item")) - 1}
    assert len(cuts["unit"]) + len(cuts["test"]) == 2 * len(TEXTS) and cuts["test"]
    assert [cut.id for cut in cuts["unit"]] == [cut.id for cut in cuts["voice"]]
    assert not {cut.supervisions[0].text for cut in cuts["unit"]} & {cut.supervisions[0].text for cut in cuts["test"]}
    for own in cuts.values():
        assert {cut.supervisions[0].speaker for cut in own} == {"V001", "V002"}
        for cut in own:
            assert cut.sampling_rate == 16000 and cut.id.startswith(cut.supervisions[0].speaker + "_level")
            assert cut.supervisions[0].text in TEXTS
    assert soundfile.info(str(folder / "wavs" / f"{cuts['test'][0].id}.flac")).subtype == "PCM_16"
    samples = cuts["test"][0].load_audio()
    assert samples.shape[0] == 1 and samples.std() > 0.01
    assert [name for (name,) in lines(folder / "bitrate_filelist")] == [cut.id for cut in cuts["test"]]


def test_alignment_covers_every_utterance(corpus):
    folder, cuts, _ = corpus
    ends = defaultdict(float)
    for name, channel, start, duration, _phone in lines(folder / "alignment.ctm"):
        assert channel == "1" and float(duration) > 0.02 and float(start) == pytest.approx(ends[name], abs=2e-4)
        ends[name] = float(start) + float(duration)
    durations = {cut.id: cut.duration for part in ("unit", "test") for cut in cuts[part]}
    assert set(ends) == set(durations)
    for name, end in ends.items():
        assert end == pytest.approx(durations[name], abs=2e-4)


def test_items(corpus):
    folder, cuts, _ = corpus
    header, *items = lines(folder / "abx.item")
    assert " ".join(header) == "#file onset offset #phone prev-phone next-phone speaker"
    durations = {cut.id: cut.duration for cut in cuts["test"]}
    for name, onset, offset, *_, speaker in items:
        assert name.startswith(speaker) and 0 <= float(onset) < float(offset) <= durations[name] + 1e-4


def test_same_again(corpus, clips, tmp_path):
    folder, _, _ = corpus
    zerospeech_mini.prepare(tmp_path, log, clips=clips, jobs=1)
    for name in ("abx.item", "alignment.ctm", "bitrate_filelist"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_scale(clips):
    sizes = [defaultdict(set) for _ in range(2)]
    for scale, size in zip((1.0, 0.25), sizes, strict=True):
        for one in zerospeech_mini.choose(clips, "cs", scale, log)[0]:
            size[one.split].add(one.id)
    assert sizes[1]["train"] < sizes[0]["train"] and sizes[1]["test"] <= sizes[0]["test"]


def test_shares():
    tested = sum(zerospeech_mini.split_of(f"text {number}") == "test" for number in range(4000))
    assert tested == pytest.approx(1400, abs=120)
    assert zerospeech_mini.split_of("Co je to?!") == zerospeech_mini.split_of("co, je to...")


def test_chosen_items():
    def utterance(phones):
        return [(phone, 0.1 * number, 0.1 * number + 0.1) for number, phone in enumerate(phones.split())]

    segments = {
        "one": utterance("p a t sil p e t p o t"),
        "two": utterance("p a t p e t k o k"),
        "again": utterance("p a t"),
        "three": utterance("k o k p a sil t"),
    }
    items = zerospeech_mini.triphone_items(segments, {"one": "V1", "three": "V1", "two": "V2", "again": "V2"}, "cs:")
    # o between p and t has one speaker; o between k and k is alone in its context
    assert [(name, *rest) for name, _, _, *rest in items] == [
        ("again", "cs:a", "cs:p", "cs:t", "V2"),
        ("one", "cs:a", "cs:p", "cs:t", "V1"),
        ("one", "cs:e", "cs:p", "cs:t", "V1"),
        ("two", "cs:a", "cs:p", "cs:t", "V2"),
        ("two", "cs:e", "cs:p", "cs:t", "V2"),
    ]
    assert items[1][1:3] == pytest.approx((0.0, 0.3)) and items[2][1:3] == pytest.approx((0.4, 0.7))
    assert len(zerospeech_mini.triphone_items(segments, {"one": "V1", "three": "V1", "two": "V2", "again": "V2"}, most=1)) == 4
    slow = {name: [(phone, 5 * start, 5 * end) for phone, start, end in own] for name, own in segments.items()}
    assert zerospeech_mini.triphone_items(slow, {"one": "V1", "three": "V1", "two": "V2", "again": "V2"}) == []


def test_scripts(tmp_path):
    (tmp_path / "script/cave").mkdir(parents=True)
    (tmp_path / "script/cave/dialogs_cs.lua").write_text(
        'dialogId("a-m-x", "font_small", "An \\"x\\".")\ndialogStr("To je \\"iks\\".")\n\n'
        'dialogId("a-v-y",  "font_big", "Y")\n-- a remark\ndialogStr("Ypsilon")\ndialogId("none", "font_big", "N")\n',
        encoding="utf-8",
    )
    (tmp_path / "script/cave/dialogs_nl.lua").write_text('dialogId("a-m-x", "font_small", "x")\ndialogStr("Een x")\n')
    assert zerospeech_mini.read_scripts(tmp_path, "cs") == {
        ("cave", "a-m-x", "font_small"): 'To je "iks".',
        ("cave", "a-v-y", "font_big"): "Ypsilon",
    }


def test_too_little_is_left(clips, tmp_path):
    with pytest.raises(UserError, match="scale=0.001: no train utterance of cs is left; expected a larger share"):
        zerospeech_mini.prepare(tmp_path, log, clips=clips, scale=0.001)


def test_nothing_to_compare(clips, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(zerospeech_mini, "LONGEST_ITEM", 0.0)
    (tmp_path / "abx.item").write_text("of another scale")
    assert zerospeech_mini.prepare(tmp_path, log, clips=clips)["items"] == 0
    assert not (tmp_path / "abx.item").exists() and "there will be no ABX" in caplog.text


def test_unknown_language(tmp_path):
    with pytest.raises(UserError, match="language 'fi'; expected some of cs, nl"):
        zerospeech_mini.prepare(tmp_path, log, languages=("fi",))
