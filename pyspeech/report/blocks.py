"""RESULTS.md as data: what `pyspeech.report.tables.report_text` writes, for a page that shows all of it as text."""

from __future__ import annotations

import re
from typing import Any


def sections(text: str) -> list[dict[str, Any]]:
    """[{"title", "blocks"}] by headings of the second level, what is before the first of them with the title of the page.

    A block is {"table": {"header": [cell], "rows": [[cell]]}}, {"items": [str]} or {"text": str}; nothing is marked up.
    """
    found: list[dict[str, Any]] = [{"title": "", "blocks": []}]
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if line.strip()]
        while lines and lines[0].startswith("#"):
            title = lines.pop(0).lstrip("#").strip()
            if found[-1]["blocks"] or found[-1]["title"]:
                found.append({"title": title, "blocks": []})
            else:
                found[-1]["title"] = title
        if lines:
            found[-1]["blocks"].append(_block(lines))
    return [section for section in found if section["blocks"]]


def _block(lines):
    if len(lines) > 1 and lines[0].startswith("|") and re.fullmatch(r"[|\s:-]+", lines[1]):
        return {"table": {"header": _cells(lines[0]), "rows": [_cells(line) for line in lines[2:] if line.startswith("|")]}}
    if all(line.startswith("- ") for line in lines):
        return {"items": [line[2:] for line in lines]}
    return {"text": " ".join(lines)}


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
