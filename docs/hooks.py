"""Show pages that live elsewhere in the repository, such as egs/fearless/README.md, as pages of the site."""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "recipes/adding.md": "egs/README.md",
    "cards/sad.md": "pyspeech/sad/shipped/README.md",
    "cards/spoof.md": "pyspeech/spoof/shipped/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "index.md": "README.md",
    **{f"recipes/{path.parent.name}.md": f"egs/{path.parent.name}/README.md" for path in ROOT.glob("egs/*/README.md")},
    **{f"results/{path.parent.name}.md": f"egs/{path.parent.name}/RESULTS.md" for path in ROOT.glob("egs/*/RESULTS.md")},
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#]+)(#[^)]*)?\)")


def on_files(files, config):
    """Add the pages, and the pictures that they show."""
    for page, source in PAGES.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=rewritten(page, source)))
    for source in PAGES.values():
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / source).read_text(encoding="utf-8")):
            path = _in_repository(source, picture)
            if path not in files.src_uris:
                files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def rewritten(page, source):
    """The text of a page with links to other pages of the site; those to files of the repository become plain text."""

    def link(match):
        picture, text, target, anchor = match.groups()
        if "://" in target:
            return match[0]
        path = _in_repository(source, target)
        pages = {origin: name for name, origin in PAGES.items()}
        if not picture and path not in pages and not path.startswith("docs/"):
            return text
        uri = path if picture else pages.get(path, path.removeprefix("docs/"))
        return f"{picture}[{text}]({posixpath.relpath(uri, posixpath.dirname(page) or '.')}{anchor or ''})"

    return LINK.sub(link, (ROOT / source).read_text(encoding="utf-8"))


def _in_repository(source, target):
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
