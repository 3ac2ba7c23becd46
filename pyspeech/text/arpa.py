"""n-gram language models with back-off as ARPA files, the format of SRILM, KenLM, IRSTLM and others.

    \\data\\
    ngram 1=4
    ngram 2=3

    \\1-grams:
    -99      <s>   -0.3
    -0.6     a     -0.2
    ...
    \\end\\

A line has the log10 of the probability of a word after those before it, the words, and the log10 of the back-off weight of the
n-gram as a history (0 where it is missing).
"""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyspeech.errors import UserError
from pyspeech.files import atomic_write, text_lines

START, END, UNKNOWN = "<s>", "</s>", ("<unk>", "<UNK>")
NEVER = -99.0  # log10 of the probability of what is not predicted, such as START


@dataclass
class Ngrams:
    """The M n-grams of one order: words (M, n) int32, numbers of words; log_probs, backoffs (M,) float64, log10."""

    words: np.ndarray
    log_probs: np.ndarray
    backoffs: np.ndarray


@dataclass
class Arpa:
    """An n-gram model: its words, with the numbers that n-grams have, and the n-grams of each order from 1 on."""

    words: list[str]
    orders: list[Ngrams]
    source: str = "language model"  # what messages call it

    @property
    def order(self) -> int:
        return len(self.orders)


def read_arpa(path: str | Path) -> Arpa:
    """Read an ARPA file, compressed where its name ends in .gz; UserError, which names the line, for any other."""
    lines = _Lines(path)
    counts = _read_header(lines)
    words, numbers, orders = [], {}, []
    for order, count in enumerate(counts, start=1):
        if order > 1:
            lines.expect(f"\\{order}-grams:")
        try:
            ids, values = np.zeros((count, order), dtype=np.int32), np.zeros((count, 2))
        except (MemoryError, ValueError):
            raise lines.error(f"{count} {order}-grams, by the header, are more than memory holds") from None
        for row in range(count):
            fields = lines.next(f"{count} {order}-grams").split()
            if len(fields) not in (order + 1, order + 2):
                raise lines.error(f"{len(fields)} fields; expected log probability, {order} word{'s' * (order > 1)}, back-off")
            if order == 1:
                numbers[fields[1]] = len(words)
                words.append(fields[1])
            try:
                ids[row] = [numbers[word] for word in fields[1 : order + 1]]
                values[row, : len(fields) - order] = float(fields[0]), *map(float, fields[order + 1 :])
            except KeyError as error:
                raise lines.error(f"{error.args[0]} is not among the 1-grams") from None
            except ValueError as error:
                raise lines.error(str(error)) from None
        if len(numbers) < len(words):
            raise lines.error("1-grams that are there twice")
        if not (values[:, 0] <= 1e-3).all() or not np.isfinite(values).all():
            raise lines.error(f"{order}-grams with log probabilities above 0, or not finite, above this line")
        orders.append(Ngrams(ids, values[:, 0], values[:, 1]))
    lines.expect("\\end\\")
    return Arpa(words, orders, str(path))


def write_arpa(path: str | Path, arpa: Arpa) -> None:
    """Write an ARPA file, whole or not at all; compressed where its name ends in .gz."""
    with atomic_write(path, "wb") as raw, contextlib.ExitStack() as stack:
        if str(path).endswith(".gz"):
            raw = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        stream = stack.enter_context(io.TextIOWrapper(raw, "utf-8"))
        stream.write("\\data\\\n")
        stream.writelines(f"ngram {order}={len(ngrams.words)}\n" for order, ngrams in enumerate(arpa.orders, start=1))
        for order, ngrams in enumerate(arpa.orders, start=1):
            stream.write(f"\n\\{order}-grams:\n")
            stream.writelines(_written(arpa, ngrams, order < arpa.order))
        stream.write("\n\\end\\\n")


def _written(arpa, ngrams, with_backoff) -> Iterator[str]:
    rows = zip(ngrams.words.tolist(), ngrams.log_probs.tolist(), ngrams.backoffs.tolist(), strict=True)
    for ids, log_prob, backoff in rows:
        end = f"\t{backoff:.7g}" if with_backoff and backoff else ""
        yield f"{log_prob:.7g}\t{' '.join(arpa.words[number] for number in ids)}{end}\n"


class _Lines:
    """The lines of a file that are not empty, with errors that name them."""

    def __init__(self, path):
        self.path, self.number = path, 0
        self._lines = text_lines(Path(path))

    def next(self, expected):
        for line in self._lines:
            self.number += 1
            if line.strip():
                return line.strip()
        raise UserError(f"{self.path}: ends at line {self.number}; expected {expected}: the file is not ARPA, or not whole")

    def expect(self, expected):
        found = self.next(expected)
        if found != expected:
            raise self.error(f"{found[:40]!r}; expected {expected}")

    def error(self, problem):
        return UserError(f"{self.path}, line {self.number}: {problem}")


def _read_header(lines):
    """Numbers of n-grams of each order; reads up to the title of the first section."""
    while lines.next("\\data\\") != "\\data\\":
        pass
    counts = []
    while True:
        line = lines.next("ngram 1=N").replace(" ", "")
        name, _, count = line.removeprefix("ngram").partition("=")
        if line.startswith("ngram") and name == str(len(counts) + 1) and count.isdecimal():
            counts.append(int(count))
        elif counts and line == "\\1-grams:":
            return counts
        else:
            raise lines.error(f"{line[:40]!r}; expected 'ngram {len(counts) + 1}=N'" + " or \\1-grams:" * bool(counts))
