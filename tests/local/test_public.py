"""The public list: what it says fits together; its files out of clones and over HTTP, resumed, and with a repository gone."""

import csv
import hashlib
import logging
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from git_harness import make_repository
from tiny_audio import write_audio
from tool_harness import one_line_error

from local.add2022 import public
from pyspeech.data.manifests import load_cuts
from pyspeech.fetch.download import cache_dir
from pyspeech.spoof.formats import family_of, original_of, page_of
from steps.spoof import corpus

LOG = logging.getLogger("public")


def test_the_list():
    pages, clips = public.read_list()
    families = public._families()
    assert set(clips) == {page.page for page in pages} and len(clips) == len(pages)
    assert all(re.fullmatch(r"[0-9a-f]{40}", page.commit) and page.licence and "/" in page.repository for page in pages)
    everything = [clip for found in clips.values() for clip in found]
    assert all(re.fullmatch(r"[0-9a-f]{64}", clip.sha256) for clip in everything)
    assert len({clip.sha256 for clip in everything}) == len({(clip.page, clip.path) for clip in everything}) == len(everything)
    assert {clip.system for clip in everything} == {"", *families} and all(families.values())
    genuine = {(clip.page, clip.path) for clip in everything if not clip.system}
    assert all((clip.page, clip.original) in genuine for clip in everything if clip.original)
    assert not [clip for clip in everything if clip.original and not clip.system]
    assert not [clip for clip in everything if ".." in clip.path.split("/") or clip.path.startswith("/")]


def test_the_sets_of_the_list():
    pages, clips = public.read_list()
    split = {page.page: page.split for page in pages}
    count = Counter((split[name], bool(clip.system)) for name, found in clips.items() for clip in found)
    assert set(split.values()) == {"train", "dev"} and len(count) == 4
    of_fakes, of_genuine = (count["dev", fake] / (count["dev", fake] + count["train", fake]) for fake in (True, False))
    assert 0.1 < of_fakes < 0.25 and 0.1 < of_genuine < 0.25


@pytest.fixture
def small(server, tmp_path, monkeypatch):
    """{path in the corpus: contents} of a list of two repositories, whose files a web server and clones have."""
    monkeypatch.setenv("PYSPEECH_GITHUB_RAW", server.base)
    contents = {
        name: write_audio(tmp_path / "made.wav", seconds=0.3, seed=seed).read_bytes()
        for seed, name in enumerate(["one/real/a b.wav", "one/fake/a b.wav", "two/x;1&y.wav", "two/z.wav"])
    }
    folder, server.files, pages = tmp_path / "list", {}, []
    monkeypatch.setattr(public, "LISTS", folder)
    for page, split in (("one", "train"), ("two", "dev")):
        files = {name.partition("/")[2]: body for name, body in contents.items() if name.startswith(page)}
        commit = make_repository(tmp_path / "clones" / f"owner+{page}", files)
        pages.append(f"{page}\towner/{page}\t{commit}\tMIT\t{split}\n")
        server.files.update({f"/owner/{page}/{commit}/{public.urllib.parse.quote(path)}": body for path, body in files.items()})
    folder.mkdir()
    (folder / "pages.tsv").write_text("page\trepository\tcommit\tlicence\tsplit\n" + "".join(pages))
    (folder / "systems.tsv").write_text("system\tfamily\nVocoder 1\tGAN\n")
    clips = [
        ("one", "fake/a b.wav", "Vocoder 1", "", "en", "real/a b.wav"),
        ("one", "real/a b.wav", "", "0001", "en", ""),
        ("two", "x;1&y.wav", "Vocoder 1", "0001", "ta", ""),
        ("two", "z.wav", "", "0002", "ta", ""),
    ]
    lines = ["\t".join([*clip, hashlib.sha256(contents[f"{clip[0]}/{clip[1]}"]).hexdigest()]) for clip in clips]
    (folder / "files.tsv").write_text("\n".join(["\t".join(public.Clip._fields), *lines, ""]))
    return contents


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


@pytest.mark.parametrize("from_clones", [False, True])
def test_fetched_whole(from_clones, small, server, tmp_path, out):
    found = public.fetch(out, LOG, tmp_path / "clones" if from_clones else None)
    assert len(server.requests) == (0 if from_clones else 4)
    rows = rows_of(found)
    assert list(rows[0]) == ["path", "label", "system", "family", "speaker", "language", "original", "split", "page"]
    assert {row["path"]: (found.parent / row["path"]).read_bytes() for row in rows} == small
    assert [list(row.values())[1:] for row in rows] == [
        ["fake", "Vocoder 1", "GAN", "", "en", "one/real/a b.wav", "train", "one"],
        ["genuine", "", "", "one-0001", "en", "", "train", "one"],
        ["fake", "Vocoder 1", "GAN", "two-0001", "ta", "", "dev", "two"],
        ["genuine", "", "", "two-0002", "ta", "", "dev", "two"],
    ]


def test_the_network_has_what_clones_lack(small, tmp_path, out):
    (tmp_path / "clones/owner+two/.git/HEAD").unlink()
    (tmp_path / "clones/owner+one/.git/objects").rename(tmp_path / "objects")
    found = public.fetch(out, LOG, tmp_path / "clones")
    assert {row["path"]: (found.parent / row["path"]).read_bytes() for row in rows_of(found)} == small


def test_goes_on_where_it_stopped(small, server, out):
    files = dict(server.files)
    server.files = {path: body for path, body in files.items() if path.startswith("/owner/one")}
    with one_line_error("corpus=public: 2 of 2 files of owner/two are missing: .*404.*skip_bad=true"):
        public.fetch(out, LOG)
    (out / "one/real/a b.wav").write_bytes(b"damaged")
    server.files, server.requests = files, []
    found = public.fetch(out, LOG)
    assert len(server.requests) == 3
    assert {row["path"]: (found.parent / row["path"]).read_bytes() for row in rows_of(found)} == small


def test_without_a_repository_that_is_gone(small, server, tmp_path, out, caplog):
    server.files = {path: body for path, body in server.files.items() if path.startswith("/owner/one")}
    found = public.fetch(out, LOG, skip_bad=True)
    assert {row["page"] for row in rows_of(found)} == {"one"}
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1 and "owner/two" in warnings[0] and "\n" not in warnings[0]
    server.files = {}
    with one_line_error("none of its files"):
        public.fetch(tmp_path / "elsewhere", LOG, skip_bad=True)


def test_the_recipe_prepares_it(small, tmp_path):
    """The recipe's first stage: manifests of what was fetched into the cache, with pages, families and originals."""
    conf = SimpleNamespace(corpus="public", kind="auto", split_by="auto", skip_bad=False, clones=str(tmp_path / "clones"))
    corpus.prepare(SimpleNamespace(dir=tmp_path / "exp", log=LOG, parts=None), conf)
    cuts = {cut.id: cut for part in ("train", "dev") for cut in load_cuts(tmp_path / "exp/corpus", part)}
    sources = {str(Path(cut.recording.sources[0].source).relative_to(cache_dir() / "public_fakes")) for cut in cuts.values()}
    assert sources == set(small)
    fake, genuine = (
        next(one for one in cuts.values() if one.recording.sources[0].source.endswith(f"{kind}/a b.wav"))
        for kind in ("fake", "real")
    )
    assert (family_of(fake), page_of(fake), original_of(fake)) == ("GAN", "one", genuine.id)
