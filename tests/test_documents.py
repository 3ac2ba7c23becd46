"""The documents stay short: CONTRIBUTING.md ("Style") has the limits, here they are counted."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = ("*.md", "docs/*.md", "egs/*.md", "egs/*/*.md", "pyspeech/*/shipped/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
RESULTS = sorted(ROOT.glob("egs/*/RESULTS.md"))
GENERATED = ROOT / "docs/api.md"
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.,]*(?!\w)")
DATE = re.compile(r"\b20\d\d-\d\d(-\d\d)?\b")


def name(page):
    return str(page.relative_to(ROOT))


def text_of(page):
    return page.read_text(encoding="utf-8")


def prose(text):
    """The text without blocks of code, tables and pictures; commands and names in backquotes are one word, links their text."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    return re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))


def test_prose_is_what_people_read():
    text = "One [link](x.md#y) of `a 1 b`.\n\n![No 2](p.png)\n\n| 3 |\n|---|\n\n```\n4\n```\nEnd 5.\n"
    assert prose(text).split() == ["One", "[link]", "of", "code.", "End", "5."]


def test_all_documents_together():
    counts = {name(page): len(text_of(page).split()) for page in PAGES if page != GENERATED}
    assert len(counts) > 20
    assert sum(counts.values()) <= 15_000, counts


def test_readme():
    text = text_of(ROOT / "README.md")
    assert len(text.split()) <= 600 and len(text.splitlines()) <= 120


@pytest.mark.parametrize("page", sorted(ROOT.glob("egs/*/README.md")), ids=name)
def test_readme_of_a_recipe(page):
    assert len(prose(text_of(page).partition("\n## What the paper does not say")[0]).split()) <= 500


@pytest.mark.parametrize("page", sorted(ROOT.glob("pyspeech/*/shipped/README.md")), ids=name)
def test_model_card(page):
    assert len(prose(text_of(page)).split()) <= 600


@pytest.mark.parametrize("page", RESULTS, ids=name)
def test_results_have_figures_in_tables(page):
    text = prose(text_of(page))
    words = len(text.split())
    assert words <= 300
    assert len(NUMBER.findall(DATE.sub("", text))) <= 0.04 * words


@pytest.mark.parametrize("page", RESULTS, ids=name)
def test_results_have_few_short_bullets(page):
    for section in re.split(r"^#+ ", prose(text_of(page)), flags=re.MULTILINE):
        bullets = re.findall(r"^- (.+(?:\n  .+)*)", section, re.MULTILINE)
        assert len(bullets) <= 5
        assert not [bullet for bullet in bullets if len(re.findall(r"[.!?](?=\W*\s|\W*$)", bullet)) > 2]
