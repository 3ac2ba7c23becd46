"""Many small files: those that are there already are left alone, the others are downloaded over a few connections."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pyspeech.errors import DownloadError
from pyspeech.fetch.download import download, file_sha256

CONNECTIONS = 4  # at a time: more is not polite to a server that is free of charge
PATIENCE = 3  # files that a source may lack before it is given up, where it has given none


class Remote(NamedTuple):
    """A file: where it is, where it belongs, and its SHA-256 in lower-case hexadecimal digits."""

    url: str
    target: Path
    sha256: str


def missing(files: Iterable[Remote]) -> list[Remote]:
    """Select the files that are missing or differ."""
    return [one for one in files if not (one.target.is_file() and file_sha256(one.target) == one.sha256)]


def download_all(files: Sequence[Remote], name: str) -> dict[Path, str]:
    """Download files of one source. A lock is held by the caller; a file that is not whole is continued.

    Args:
        files: Those that are `missing`.
        name: Of the source, for the progress bar.

    Returns:
        {target: why it cannot be had}. When as many as `PATIENCE` cannot, and none could, the others are not asked for.
    """
    from tqdm import tqdm

    failures, got, lock = {}, [], threading.Lock()

    def get(one):
        with lock:
            if len(failures) >= PATIENCE and not got:
                failures[one.target] = next(iter(failures.values()))
                return
        try:
            one.target.parent.mkdir(parents=True, exist_ok=True)
            download(one.url, one.target, one.sha256, quiet=True)
        except DownloadError as error:
            with lock:
                failures[one.target] = str(error)
        else:
            got.append(one)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            list(tqdm(pool.map(get, files), name, len(files), unit="file", leave=False, disable=None))
        finally:
            pool.shutdown(cancel_futures=True)
    return failures
