"""Report pages of made-up experiments of all tasks, in a headless Chromium: what they show, and that hostile names are text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser_harness import check_page
from tiny_experiments import NAME, TEXT, make_asr, make_common, make_sad, make_spoof, make_units, sound

from pyspeech.errors import UserError
from pyspeech.report.page import write_page

MAKERS = {"sad": make_sad, "asr": make_asr, "spoof": make_spoof, "units": make_units}
# The titles of the examples that are seen, in their order.
SEEN = """[...document.querySelectorAll(".example")].filter((card) => !card.hidden)
    .map((card) => card.querySelector("h4").textContent)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """{task: index.html} of a made-up experiment of each task."""
    folder = tmp_path_factory.mktemp("experiments")
    return {task: write_page([make(folder / task)], folder / task / "report") for task, make in MAKERS.items()}


def choose(browser, key, value):
    select = f"document.querySelector('select[data-key={key}]')"
    browser.run(f"{select}.value = {json.dumps(value)}; {select}.dispatchEvent(new Event('change', {{bubbles: true}}))")


@pytest.mark.parametrize("task", MAKERS)
def test_opens_plays_filters(pages, browser, task, tmp_path):
    check_page(browser, pages[task], tmp_path, sliders=task in ("sad", "spoof"))


@pytest.mark.parametrize("task", MAKERS)
def test_hostile_names_are_text(pages, browser, task):
    browser.open(pages[task])
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.querySelectorAll('main img:not([src^=data])').length") == 0
    text = browser.run("document.body.textContent")
    assert NAME in text and TEXT in text and "54439" not in text  # of {{ 7777*7 }}
    assert browser.run("typeof hostile") == "undefined" and browser.problems == []


@pytest.mark.parametrize("task", MAKERS)
def test_needs_nothing_but_its_folder(pages, task):
    text = pages[task].read_text(encoding="utf-8")
    assert "http:" not in text.replace("http://www.w3.org", "") and "https:" not in text
    audio = {path.name for path in (pages[task].parent / "audio").iterdir()}
    assert audio == {part.partition('"')[0] for part in text.split('src="audio/')[1:]}


def test_every_chart_has_its_table(pages, browser):
    for page in pages.values():
        browser.open(page)
        assert browser.run("[...document.querySelectorAll('figure.chart')].every((it) => it.querySelector('table tbody td'))")


def test_common_parts(pages, browser):
    browser.open(pages["sad"])
    assert browser.run("document.querySelector('#results table td').textContent") == "1.5 [1.2, 1.9]"
    ran = browser.run("document.querySelector('#ran dl').textContent")
    for said in ("train.lr=0.5 note=<b>", "quick", "41, 42", "abc1", NAME):
        assert said in ran
    assert "1:15 min" in browser.run("document.querySelector('#stages').textContent")
    assert browser.run("[...document.querySelectorAll('#training figcaption')].map((it) => it.textContent)") == [
        "loss",
        "validation dcf",
        "validation loss_en-IN",
    ]


def test_worst_miss_of_a_system_stands_first(pages, browser):
    browser.open(pages["sad"])
    assert browser.run("document.querySelector('select[data-key=system]').value") == ""
    assert browser.run("document.querySelector('.example:not([hidden]) .match').textContent").startswith("bad: 2.00 s missed")
    choose(browser, "system", "bad")
    notes = browser.run(
        "[...document.querySelectorAll('.example:not([hidden])')].map((it) => it.querySelector('.notes .match').textContent)"
    )
    assert notes == ["bad: 2.00 s missed speech at 2.00 s"] * 2
    choose(browser, "kind", "false alarm")
    assert browser.run("document.querySelector('.example:not([hidden]) .match').textContent").startswith(
        "bad: 1.00 s false alarm"
    )


def test_lanes_lie_under_the_picture(pages, browser):
    """A miss of 2 s in a picture of 12 s is a sixth of it wide, and begins where the picture says."""
    browser.open(pages["sad"])
    place = """(() => {
        const card = [...document.querySelectorAll(".example")].find((it) => it.textContent.includes("bad: 2.00"));
        const box = (it) => it.getBoundingClientRect(), picture = box(card.querySelector("img"));
        const miss = [...card.querySelectorAll("i.miss")].map(box).sort((a, b) => b.width - a.width)[0];
        return [(miss.left - picture.left) / picture.width, miss.width / picture.width]; })()"""
    assert browser.run(place) == pytest.approx([2 / 12, 2 / 12], abs=0.002)


def test_slider_shows_the_figures_at_its_threshold(pages, browser):
    browser.open(pages["sad"])
    cells = "[...document.querySelectorAll('.threshold td[data-column]')].map((it) => Number(it.textContent))"
    assert browser.run(cells) == [38.0, 30.0, 70.0]  # DCF, Pmiss, Pfa at 0.3
    slider = "document.querySelector('.threshold input')"
    browser.run(f"{slider}.value = 10; {slider}.dispatchEvent(new Event('input'))")
    assert browser.run(cells) == pytest.approx([10.0, 100.0, 0.0])


def test_two_charts_of_thresholds_are_told_apart_and_say_what_they_cut_off(tmp_path, browser):
    folder = make_sad(tmp_path / "exp")
    x = [0.0, 5.0, 10.0]
    sweep = {"thresholds": x, "dcf": [0.02, 0.04, 0.9], "p_miss": x, "p_fa": x, "threshold": 0.0, "best_dcf": 0.02}
    for system in ("levels", "other"):
        (folder / "sweeps" / f"{system}.json").write_text(json.dumps({"none": {"0": sweep}}))
    write_page([folder], folder / "report")
    browser.open(folder / "report" / "index.html")
    assert browser.run("[...document.querySelectorAll('.threshold figcaption')].map((it) => it.textContent)") == [
        "DCF on dev by the threshold of good + hmm",
        "DCF on dev by the threshold of levels + none and other + none",
    ]
    note = "document.querySelectorAll('.threshold figure')[1].querySelector('.note').textContent"
    assert browser.run(note).startswith("Cut off at 10 %: levels + none and other + none.")
    assert browser.run("document.querySelectorAll('.threshold')[0].querySelectorAll('.note').length") == 0


def test_systems_have_the_names_of_the_tables(tmp_path, browser):
    """What the stage of a recipe writes beside its page is what all pages of the experiment call its systems."""
    folder = make_sad(tmp_path / "exp")
    called = {"good": f"Good {NAME}", "bad": "Bad + HMM"}
    (folder / "report").mkdir()
    (folder / "report" / "names.json").write_text(json.dumps(called), encoding="utf-8")
    browser.open(write_page([folder], tmp_path / "out"))
    options = browser.run("[...document.querySelector('select[data-key=system]').options].map((it) => it.value)")
    assert options == ["", called["good"], called["bad"]]
    choose(browser, "system", "Bad + HMM")
    note = "document.querySelector('.example:not([hidden]) .match').textContent"
    assert browser.run(note).startswith("Bad + HMM: 2.00 s missed speech")
    lanes = browser.run(
        "[...document.querySelector('.example').querySelectorAll('.names b')].map((it) => it.textContent.trim())"
    )
    assert lanes == ["", "reference", called["good"], *called.values(), "time / s"]
    assert f"of {called['good']}" in browser.run("document.querySelector('.threshold figcaption').textContent")
    assert browser.problems == []


def test_times_of_ticks(pages, browser):
    """Round times, where the picture has them; more of them where it is zoomed."""
    browser.open(pages["sad"])
    places = """(() => { const card = document.querySelector(".example:not([hidden])"), look = card.querySelector(".look");
        return [[...look.querySelectorAll(".ticks i")].map((it) => [Number(it.textContent), parseFloat(it.style.left)]),
                Number(look.dataset.offset), Number(look.dataset.seconds)]; })()"""
    ticks, offset, seconds = browser.run(places)
    assert len(ticks) > 5 and all(time == int(time) for time, _ in ticks)
    for time, place in ticks:
        assert offset + place / 100 * seconds == pytest.approx(time, abs=1e-3)
    browser.run("document.querySelector('.example:not([hidden]) [data-zoom]').click()")
    browser.press("n")
    for _ in range(3):
        browser.press("+")
    browser.wait(lambda: len(browser.run(places)[0]) > 3 * len(ticks))


def test_commands_stand_without_backticks(tmp_path, browser):
    folder = make_sad(tmp_path / "exp")
    (folder / "RESULTS.md").write_text(f"# Title\n\nMade by `run.py '{TEXT}'`.\n\nOne ` alone.\n", encoding="utf-8")
    browser.open(write_page([folder], tmp_path / "out"))
    assert browser.run("[...document.querySelectorAll('#results code')].map((it) => it.textContent)") == [f"run.py '{TEXT}'"]
    shown = browser.run("[...document.querySelectorAll('#results p')].map((it) => it.textContent)")
    assert shown == [f"Made by run.py '{TEXT}'.", "One ` alone."] and browser.problems == []


def test_links_of_the_page_lead_to_its_sections(pages, browser):
    for page in pages.values():
        browser.open(page)
        found = "[...document.querySelectorAll('nav a')].every((it) => document.querySelectorAll(it.hash).length === 1)"
        assert browser.run(found) and browser.run("document.querySelectorAll('[id$=\"-0\"]').length") == 0


def test_words_are_aligned(pages, browser):
    browser.open(pages["asr"])
    rows = """(() => { const card = [...document.querySelectorAll(".example")].find((it) => it.querySelector(".more"));
        return [...card.querySelector(".words").rows].map((row) => [...row.cells].slice(1).map((it) => it.textContent)); })()"""
    reference, hypothesis = browser.run(rows)
    assert len(reference) == len(hypothesis) == len(TEXT.split()) + 2 and reference[-2:] == [" ", " "]
    assert hypothesis[-2:] == ["more", "new"] and ("a&b", "wrong") in zip(reference, hypothesis, strict=True)
    assert browser.run("document.querySelectorAll('.example i.mark').length") == 4  # a decoder of two stops, in each utterance
    choose(browser, "speaker", NAME)
    assert {title.split()[0] for title in browser.run(SEEN)} == {"en-IN"}


def test_wrong_side_of_the_threshold(pages, browser):
    browser.open(pages["spoof"])
    assert [title.partition(",")[0] for title in browser.run(SEEN)] == ["u5<b>"]
    choose(browser, "kind", "genuine called fake")
    assert [title.partition(",")[0] for title in browser.run(SEEN)] == ["u4<b>"]
    assert browser.run("document.querySelector('#engines .heat td').textContent") == "10.0"


def test_units_and_voices(pages, browser):
    browser.open(pages["units"])
    units = browser.run("[...document.querySelectorAll('.example')[0].querySelectorAll('i.unit')].map((it) => it.textContent)")
    assert units == ["0", "2", "1", "0"]  # by how often: vectors 0, 2 and 1 of make_units
    assert browser.run("document.querySelectorAll('.example')[0].querySelectorAll('audio').length") == 3
    heat = browser.run("[...document.querySelectorAll('#abx .heat')[0].rows[1].cells].map((it) => it.textContent)")
    assert heat == [TEXT, "", "12", ""]


def test_keys_and_clicks(pages, browser):
    browser.open(pages["sad"])
    playing = "[...document.querySelectorAll('audio')].filter((it) => !it.paused).length"
    now = "document.querySelector('.example.now h4')?.textContent ?? null"
    first, second = browser.run(SEEN)[:2]
    browser.press("n")
    assert browser.run(now) == first
    browser.press("n")
    assert browser.run(now) == second
    browser.press("p")
    assert browser.run(now) == first
    browser.press(" ")
    browser.wait(lambda: browser.run(playing) == 1)
    browser.press("s")
    browser.wait(lambda: browser.run(playing) == 0)
    width = "document.querySelector('.example.now .stretch').clientWidth"
    before = browser.run(width)
    browser.press("+")
    assert browser.run(width) == pytest.approx(1.6 * before, abs=2)
    browser.press("-")
    browser.click(".example.now .stretch", x=0.5, y=0.2)
    browser.wait(lambda: browser.run(playing) == 1)
    assert 5.9 < browser.run("document.querySelector('.example.now audio').currentTime") < 12
    browser.press("s")
    assert browser.problems == []


def test_several_side_by_side(tmp_path, browser):
    one, other = make_sad(tmp_path / "one"), make_sad(tmp_path / "two")
    page = write_page([one, other], tmp_path / "compared")
    browser.open(page)
    assert browser.run("document.querySelectorAll('#results .beside > div').length") == 2
    legend = browser.run("[...document.querySelector('#training .legend').children].map((it) => it.textContent)")
    assert legend == ["one: net", "two: net"]
    assert browser.run("[...document.querySelectorAll('#errors h3')].map((it) => it.textContent)") == ["one", "two"]
    left, right = browser.run(
        "[...document.querySelectorAll('#errors .beside > div')].map((it) => it.getBoundingClientRect().x)"
    )
    assert left < right
    assert browser.problems == []


def test_nothing_has_finished(tmp_path, browser):
    """Only the first stage has run: a page, without an error."""
    (tmp_path / "exp" / "stages").mkdir(parents=True)
    browser.open(write_page([tmp_path / "exp"], tmp_path / "out"))
    assert "No results yet" in browser.run("document.body.textContent") and browser.problems == []


def test_what_goes_beyond_the_size_is_left_out(tmp_path):
    folder = make_sad(tmp_path / "exp")
    for seed in range(2):
        sound(folder / "corpus" / "audio" / f"{seed}.wav", 20.0, seed)
    page = write_page([folder], tmp_path / "out", limit=60_000)
    sizes = sum(path.stat().st_size for path in (tmp_path / "out" / "audio").glob("*"))
    assert sizes < 60_000 and "are left out: the page has reached its size limit" in page.read_text(encoding="utf-8")


def test_audio_that_has_gone(tmp_path, browser):
    """The corpus has been removed since: decisions and errors are shown without sound."""
    folder = make_sad(tmp_path / "exp")
    for path in (folder / "corpus" / "audio").iterdir():
        path.unlink()
    browser.open(write_page([folder], tmp_path / "out"))
    assert len(browser.run(SEEN)) == 2 and browser.run("document.querySelectorAll('audio').length") == 0
    assert browser.problems == []


def test_an_experiment_that_was_moved(tmp_path):
    """The manifests name the audio of the corpus where it was; it is found where it is."""
    moved = make_sad(tmp_path / "exp").rename(tmp_path / "moved")
    write_page([moved], tmp_path / "out")
    assert len(list((tmp_path / "out" / "audio").iterdir())) == 2


def test_no_experiment(tmp_path):
    with pytest.raises(UserError, match="no experiment folder: expected one that a recipe has made"):
        write_page([tmp_path], tmp_path / "out")


def test_command(tmp_path):
    folder = make_common(tmp_path / "exp", "A recipe of one's own")
    script = Path(__file__).resolve().parents[2] / "utils" / "report.py"
    environment = {**os.environ, "PYSPEECH_ENV": "system"}
    done = subprocess.run([sys.executable, script, folder], env=environment, text=True, capture_output=True)
    assert done.stdout == f"{folder / 'report' / 'index.html'}\n", done.stderr
    missing = subprocess.run([sys.executable, script, tmp_path], env=environment, text=True, capture_output=True)
    assert missing.returncode == 1 and missing.stderr.startswith(f"error: {tmp_path}: no experiment folder")
