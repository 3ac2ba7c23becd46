"""Public pages of speech synthesis and voice conversion: genuine and fake clips that may be trained with, fetched by commit.

The list (local/add2022/public_list) names files of public git repositories whose licence allows it:

    pages.tsv     page, repository, commit, licence, split
    systems.tsv   what made a fake, and its family
    files.tsv     page, path, system (none: genuine), speaker (within the page), language, original, sha256

`original` is the genuine file of the page whose words and timing a fake has, found by comparing spectrograms. No two files
are the same but for their level. Sets are by page, so that none shares recordings or a system's samples with another. Dev
has pages with both classes, families that train lacks or nearly lacks, and 239 genuine readers; a linear model of long-term
spectra tells its classes apart no better than 40 %. Train has the only pages of whole families of end-to-end synthesis.
LJSpeech and VCTK have readers in both.

`fetch` makes a labelled corpus of it (local/add2022/labelled.py): <page>/<path> as in the repository, and list.tsv. Files
come from clones of the repositories, or by HTTPS from GitHub; PYSPEECH_GITHUB_RAW is another address to get them from.
"""

import csv
import logging
import os
import urllib.parse
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from local.add2022.labelled import COLUMNS
from pyspeech.errors import UserError
from pyspeech.fetch.clones import find_clone, read_file
from pyspeech.fetch.download import disk_errors, locked
from pyspeech.fetch.many import Remote, download_all, missing
from pyspeech.files import atomic_write

LISTS = Path(__file__).with_name("public_list")
RAW = "https://raw.githubusercontent.com"


class Page(NamedTuple):
    """Files of a repository at a commit that belong together; split: train or dev."""

    page: str
    repository: str
    commit: str
    licence: str
    split: str


class Clip(NamedTuple):
    """A file of a page; system: what made it, "" of genuine speech; speaker, original: "" where not known."""

    page: str
    path: str
    system: str
    speaker: str
    language: str
    original: str
    sha256: str


def fetch(folder: Path, log: logging.Logger, clones: Path | None = None, skip_bad: bool = False) -> Path:
    """Bring the files of the list into `folder`; what is there and right is left alone. Returns its list.tsv.

    Args:
        clones: A folder with clones of repositories, which are asked before the network.
        skip_bad: Go on without what cannot be had.

    Raises:
        UserError: For the first repository of which something cannot be had, unless skip_bad; for none at all.
    """
    pages, clips = read_list()
    got = []
    with disk_errors(folder), locked(folder / "list.tsv"):
        for page in pages:
            got += [(page, clip) for clip in _fetch_page(page, clips[page.page], folder, clones, log, skip_bad)]
        if not got:
            raise UserError("corpus=public: none of its files can be downloaded; check the network (or https_proxy)")
        _write_list(folder / "list.tsv", got, _families())
    return folder / "list.tsv"


def read_list() -> tuple[list[Page], dict[str, list[Clip]]]:
    """The pages, and {page: its files}."""
    clips = defaultdict(list)
    for row in _rows("files.tsv"):
        clips[row["page"]].append(Clip(**row))
    return [Page(**row) for row in _rows("pages.tsv")], clips


def _rows(name):
    with open(LISTS / name, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def _families():
    return {row["system"]: row["family"] for row in _rows("systems.tsv")}


def _fetch_page(page, clips, folder, clones, log, skip_bad):
    """The clips of a page that are there in the end."""
    remote = {clip: _remote(page, clip, folder) for clip in clips}
    wanted = missing(remote.values())
    if wanted:
        log.info("%s: %d of %d files of %s (%s)", page.page, len(wanted), len(clips), page.repository, page.licence)
        clone = find_clone(clones, page.repository) if clones else None
        if clone:
            _copy(clone, page.commit, {remote[clip]: clip.path for clip in clips}, wanted)
            wanted = missing(wanted)
    failures = download_all(wanted, page.page)
    if failures:
        reason = next(iter(failures.values())).partition("; ")[0]  # without what to do about it, as that file alone
        message = f"corpus=public: {len(failures)} of {len(clips)} files of {page.repository} are missing: {reason}"
        if not skip_bad:
            raise UserError(
                f"{message}; check the network (or https_proxy) and run the same command again, or give clones: "
                f"clones=DIR; skip_bad=true goes on without them"
            )
        log.warning("%s; going on without them", message)
    return [clip for clip in clips if remote[clip].target not in failures]


def _remote(page, clip, folder):
    address = os.environ.get("PYSPEECH_GITHUB_RAW", RAW).rstrip("/")
    url = f"{address}/{page.repository}/{page.commit}/{urllib.parse.quote(clip.path)}"
    return Remote(url, folder / page.page / clip.path, clip.sha256)


def _copy(clone, commit, paths, wanted):
    """Write those of the files `wanted` that a clone has. paths: {Remote: path in the repository}."""
    for one in wanted:
        contents = read_file(clone, commit, paths[one])
        if contents is not None:
            with atomic_write(one.target, "wb") as stream:
                stream.write(contents)


def _write_list(path, got, families):
    with atomic_write(path) as stream:
        writer = csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, lineterminator="\n")
        writer.writerow(COLUMNS)
        for page, clip in got:
            writer.writerow(
                [
                    f"{page.page}/{clip.path}",
                    "fake" if clip.system else "genuine",
                    clip.system,
                    families.get(clip.system, ""),
                    f"{page.page}-{clip.speaker}" if clip.speaker else "",
                    clip.language,
                    f"{page.page}/{clip.original}" if clip.original else "",
                    page.split,
                    page.page,
                ]
            )
