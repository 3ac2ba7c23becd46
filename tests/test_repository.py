"""The repository itself: what its pages name exists, its parts depend on each other one way, its facts agree."""

import ast
import graphlib
import importlib
import inspect
import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import pyspeech
from pyspeech.commands import COMMANDS as DOORS
from pyspeech.commands.main import choose

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path for places in ("*", "docs/*", "egs/*", "egs/*/*", "pyspeech/*/shipped/*") for path in ROOT.glob(f"{places}.md")
)
FOLDERS = ("egs", "local", "pyspeech", "steps", "tests", "utils")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "exp" not in path.parts)
# A path from the folder of the repository, but for what a run makes, and for placeholders (<name>, ...).
NAMED = re.compile(
    r"(?<![\w/.<>-])((?:egs|local|pyspeech|requirements|steps|tests|utils|\.ci|\.github)/[\w./-]*\w)(?![\w/<*{$-])"
)
# As egs/README.md has.
EXAMPLE = re.compile(r"(?:local|steps|egs)/keys\b|pyspeech/sad/networks/linear\b|tests/(?:local|egs)/test_keys\.py")


def named_paths(text):
    return {name for name in NAMED.findall(text) if "/exp/" not in name and not EXAMPLE.match(name)}


def missing(names):
    return sorted(name for name in names if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_links_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    assert not missing(named_paths(text))
    # The site has pages of other folders in docs/recipes: docs/hooks.py; mkdocs build --strict checks these links.
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link and not link.startswith("recipes/")]
    assert not [link for link in links if not (page.parent / link).exists()]


def test_paths_that_the_sources_name_exist():
    pattern = re.compile(NAMED.pattern.replace(r"[\w./-]*\w)", r"[\w./-]*\w\.(?:py|md|yaml|txt|sh))"))
    sources = [path for path in SOURCES if ROOT / "tests" not in path.parents]  # tests make up names
    names = {name: path for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}
    absent = {name: str(names[name].relative_to(ROOT)) for name in missing(names) if not EXAMPLE.match(name)}
    assert not absent


def test_the_check_of_paths_finds_them():
    text = "see `local/nosuch.py`, egs/fearless/exp/mini/x, egs/<recipe>/run.py, steps/<task> and [this](utils/bench/abx.py)."
    assert named_paths(text) == {"local/nosuch.py", "utils/bench/abx.py"}
    assert missing(named_paths(text)) == ["local/nosuch.py"]


def commands():
    """{script: [arguments of each command line in the pages]}"""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("./path.sh ", "")
        lines = [line for block in text.split("```")[1::2] for line in block.splitlines()]
        for line in itertools.chain(lines, re.findall(r"`([^`\n]+)`", "".join(text.split("```")[::2]))):
            line = line.partition(" #")[0].rstrip()
            match = re.search(r"(?:^ *|\| )((?:egs|utils)/[\w/]+\.py|pyspeech(?= [a-z]))((?: .*)?)$", line)
            if match and not EXAMPLE.match(match[1]):
                script, arguments = match[1], shlex.split(match[2].partition(" | ")[0])
                if script == "pyspeech":
                    name, arguments = choose(arguments)
                    script = f"utils/{DOORS[name][1]}.py"
                found.setdefault(script, []).append(arguments)
    return found


COMMANDS = commands()


def test_commands_are_found():
    assert ["train.lr=5e-4"] in COMMANDS["egs/fearless/run.py"]
    assert ["a.wav", "--point", "words"] in COMMANDS["utils/detect_speech.py"]  # the model card's `pyspeech detect`
    assert len(COMMANDS) >= 15


@pytest.mark.parametrize("script", sorted(COMMANDS))
def test_options_of_commands_in_the_pages_exist(script):
    done = subprocess.run(
        [sys.executable, ROOT / script, "--help"],
        env={**os.environ, "PYSPEECH_ENV": "system"},
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    known = set(re.findall(r"--[\w-]+|(?<=^  )[\w.]+(?==)", done.stdout, re.MULTILINE)) | {"--help"}
    for argument in itertools.chain(*COMMANDS[script]):
        name = argument.partition("=")[0]
        if argument.startswith("--") or script.endswith("/run.py") and "=" in argument:
            assert {name, name.rpartition(".")[0]} & known, f"{script} has no {name}"  # test.wild is of the option test={}


@pytest.mark.parametrize("recipe", sorted(path.parent.name for path in ROOT.glob("egs/*/run.py")))
def test_the_table_of_stages_is_that_of_the_recipe(recipe):
    done = subprocess.run(
        [sys.executable, ROOT / "egs" / recipe / "run.py", "--list"],
        env={**os.environ, "PYSPEECH_ENV": "system"},
        text=True,
        capture_output=True,
        timeout=120,
    )
    stages = [line.split()[1] for line in done.stdout.splitlines()]
    table = (ROOT / "egs" / recipe / "README.md").read_text(encoding="utf-8").split("| stage |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"\w[\w.]*\w", row.split("|")[1])]
    for name in named:  # in full, or by its beginning: train_...
        assert name in stages or any(stage.startswith(name.rstrip(".")) for stage in stages), name
    for stage in stages:
        assert stage in named or any(name.split("_")[0] == stage.split("_")[0] for name in named), stage


def imports(path):
    """Names of the modules that a file imports anywhere."""
    return names_of(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def names_of(nodes):
    """Names of what the import statements among nodes of a syntax tree import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    "folder, above",
    [
        ("pyspeech", "local steps egs utils tests"),
        ("local", "steps egs utils tests"),
        ("steps", "egs utils tests"),
        ("egs", "utils tests"),
        ("utils", "egs tests"),
        ("pyspeech/engine", "torch lhotse numpy"),
        ("pyspeech/sad", "pyspeech.asr pyspeech.units pyspeech.spoof"),
        ("pyspeech/spoof", "pyspeech.asr pyspeech.units pyspeech.sad"),
        ("pyspeech/units", "pyspeech.asr pyspeech.sad pyspeech.spoof"),
        ("pyspeech/asr", "pyspeech.sad pyspeech.spoof pyspeech.units"),
        *((f"pyspeech/{shared}", "pyspeech.sad pyspeech.spoof pyspeech.asr pyspeech.units")
          for shared in ("audio", "features", "kaldi", "text", "training")),
        *((f"steps/{task}", " ".join(f"steps.{other}" for other in ("asr", "sad", "spoof", "units") if other != task))
          for task in ("asr", "sad", "spoof", "units")),
    ],
)  # fmt: skip
def test_dependencies_point_one_way(folder, above):
    files = [path for path in SOURCES if (ROOT / folder) in path.parents]
    assert files
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imports(path)
        if any(name == other or name.startswith(other + ".") for other in above.split())
    }
    assert not wrong


def test_few_modules_of_the_library_are_in_no_folder():
    assert len([path for path in (ROOT / "pyspeech").glob("*.py") if path.name != "__init__.py"]) <= 6


def test_the_library_names_no_file_of_a_recipe():
    sources = (path for path in SOURCES if ROOT / "pyspeech" in path.parents)
    assert not [str(path) for path in sources if "egs/" in path.read_text(encoding="utf-8")]


def test_the_engine_imports_nothing_else_of_the_library():
    known = ("pyspeech.engine", "pyspeech.errors.", "pyspeech.files.", "pyspeech.launch.")
    named = {name for path in (ROOT / "pyspeech/engine").glob("*.py") for name in imports(path)}
    assert not [name for name in named if name.startswith("pyspeech") and not name.startswith(known)]


def imported_at_once(body):
    """Names that the statements import as the module loads, not within functions or for annotations alone."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            yield from imported_at_once(ast.iter_child_nodes(node))


@pytest.mark.parametrize("folders, anywhere", [("pyspeech steps local", False), ("pyspeech/engine", True)])
def test_no_import_goes_in_a_circle(folders, anywhere):
    files = [path for path in SOURCES if any(ROOT / folder in path.parents for folder in folders.split())]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).replace(".__init__", ""): path for path in files}
    graph = {}
    for module, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = ast.walk(tree) if anywhere else imported_at_once(tree.body)
        graph[module] = set()
        for name in names_of(nodes):
            while name and name not in modules:
                name = name.rpartition(".")[0]
            graph[module] |= {name} - {module, ""}
    assert any(graph.values())
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_no_import_is_excused_line_by_line():
    excuse = "noqa: " + "E402"
    assert not [str(path) for path in SOURCES if excuse in path.read_text(encoding="utf-8")]


def test_version_and_licence_are_the_same_everywhere():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = pyspeech.__version__
    assert 'dynamic = ["version"]' in project and not re.search('^version = "', project, re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    released = re.findall(r"^## \[([\d.]+)\] - ([\d-]+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert released[0] == (str(citation["version"]), citation["date-released"]) and released[0][0] == version
    assert citation["license"] == "Apache-2.0" and 'license = "Apache-2.0"' in project
    assert "Apache License\n                           Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(
        encoding="utf-8"
    )


def test_every_recipe_has_its_paper_in_the_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    recipes = sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("egs/*/run.py"))
    assert sorted(reference["notes"] for reference in citation["references"]) == recipes
    for reference in citation["references"]:
        page = (ROOT / reference["notes"] / "README.md").read_text(encoding="utf-8").replace("\n", " ")
        assert reference["title"].lower() in page.lower() and str(reference["year"]) in page
        for author in reference["authors"]:
            assert author["family-names"].replace("oe", "ö") in page.replace("oe", "ö")


OFFICIAL = ["fearless.fearless_steps", "indic.mucs", "indic.kaldi", "indic.manifests", "indic.speech_corpora"]
OFFICIAL += ["zerospeech.zerospeech2019", "add2022.add2022", "add2022.asvspoof2019"]
MADE = ["fearless.mini", "detector.scenes", "indic.mini", "indic.prompts", "zerospeech.mini", "add2022.mini"]


@pytest.mark.parametrize(
    "places, given, last", [(OFFICIAL, ["corpus", "out", "log"], ["skip_bad", "parts"]), (MADE, ["out", "log"], ["parts"])]
)
def test_corpora_share_one_signature(places, given, last):
    """prepare(corpus, out, log, *, ..., skip_bad, parts); of those that are made here: prepare(out, log, *, ..., parts)."""
    for place in places:
        parameters = inspect.signature(importlib.import_module(f"local.{place}").prepare).parameters
        names = list(parameters)
        assert names[: len(given)] == given and names[-len(last) :] == last, place
        assert all(one.kind is one.KEYWORD_ONLY for one in list(parameters.values())[len(given) :]), place
        assert all(one.default is None for one in parameters.values() if one.name == "parts"), place
