"""Merge of two ZeroSpeech 2020 submissions with one language each (pyspeech/units/submission.py has the format)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.units.submission import LANGUAGES, TRACK, check_submission

DESCRIPTION = "system description"


def merge_submissions(folders: Sequence[Path | str], out: Path | str) -> None:
    """Write `out`, a new folder, with the languages of all of `folders`.

    Their metadata have to agree; only of the description each language keeps its own. Their code is in 2019/code/<language>.
    UserError in one line where a submission has something wrong, none or another's language, or other metadata, and where
    `out` is there.
    """
    out, languages, entries = Path(out), {}, {}
    if out.exists():
        raise UserError(f"{out}: exists already; give a new folder, or remove this one")
    for folder in map(Path, folders):
        if problems := check_submission(folder):
            raise UserError(f"{folder}: {len(problems)} problems ({': '.join(problems[0])}); expected a valid submission")
        for language in LANGUAGES:
            if (folder / TRACK / language).is_dir():
                if language in languages:
                    raise UserError(f"{folder}: has {language}, as {languages[language]} has; expected another language")
                languages[language] = folder
                entries[language] = _metadata(folder)
    first = next(iter(languages))
    for language, own in entries.items():
        for name, value in own.items():
            if name != DESCRIPTION and value != entries[first].get(name):
                raise UserError(
                    f"{languages[language]}: '{name}' is {value!r}, but {entries[first].get(name)!r} in {languages[first]}; "
                    "expected the same in all"
                )
    _write(languages, entries, out)


def _metadata(folder):
    """The entries of both metadata.yaml in one."""
    import yaml

    paths = folder / "metadata.yaml", folder / TRACK / "metadata.yaml"
    return {name: value for path in paths for name, value in yaml.safe_load(path.read_text(encoding="utf-8-sig")).items()}


def _write(languages: dict[str, Path], entries: dict[str, dict[str, Any]], out: Path) -> None:
    """Copy the folders of the languages, and write the metadata last, without which a submission is none."""
    import yaml

    for language, folder in languages.items():
        shutil.copytree(folder / TRACK / language, out / TRACK / language)
        if (folder / TRACK / "code").is_dir():
            shutil.copytree(folder / TRACK / "code", out / TRACK / "code" / language)
    descriptions = {language: own[DESCRIPTION] for language, own in entries.items()}
    merged = dict(next(iter(entries.values())))
    if len(set(descriptions.values())) > 1:
        merged[DESCRIPTION] = "; ".join(f"{language}: {text}" for language, text in descriptions.items())
    top = ("author", "affiliation", "open source")
    for path, names in ((out / TRACK / "metadata.yaml", merged.keys() - set(top)), (out / "metadata.yaml", top)):
        with atomic_write(path) as stream:
            yaml.safe_dump({name: merged[name] for name in sorted(names)}, stream, allow_unicode=True)
