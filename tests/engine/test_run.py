"""The recipe engine as its user meets it: command line, plan, staleness, failures."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import types
from dataclasses import dataclass, field

import pytest
from omegaconf import OmegaConf
from toy_harness import Toy, repository

from pyspeech.engine.main import run_command
from pyspeech.engine.recipe import Recipe, folder_or, list_of_folders, named_folders, requirement
from pyspeech.errors import UserError


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path / "ré cipe [1]")


NEW = "would run: no finished record"


def test_importing_the_engine_loads_nothing_heavy():
    code = "import sys, pyspeech.engine.recipe; print(sorted({'torch', 'lhotse', 'numpy', 'scipy'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=repository)
    assert output.stdout == "[]\n"


def test_a_whole_run_and_a_second_one(toy):
    assert toy.plan() == dict.fromkeys(["prepare", "train", "score", "table"], NEW)
    assert not (toy.folder / "exp").exists()  # --dry-run writes nothing
    output, errors = toy()
    assert errors == ""
    lines = output.splitlines()
    assert lines[:3] == [
        "Toy recipe",
        f"profile mini (conf{os.sep}mini.yaml), experiment folder exp/mini",
        "Python of the tests",
    ]
    assert lines[-1].startswith("done in ") and lines[-1].endswith("exp/mini")
    assert toy.results() in output
    assert toy.results().count("step") == 6
    assert set(toy.plan().values()) == {"up to date"}
    output, errors = toy()
    assert output.count("up to date") == 4 and "Python of the tests" not in output and errors == ""


def test_records_logs_and_configuration_are_kept(toy):
    toy("collar=0.25")
    record = toy.record("train")
    assert record["config"] == {"train.steps": 3, "train.workers": 0, "train.optimiser.lr": 0.001}
    assert set(record["inputs"]) == {"manifests/train.txt", "manifests/dev.txt"}
    assert set(record["outputs"]) == {"model/best.txt"}
    assert (record["cpus"], record["gpus"], record["hours"], record["attempts"]) == (1, 1, 12, 1)
    assert record["seconds"] >= 0 and record["peak_memory_mb"] > 1 and record["environment"] == "Python of the tests"
    assert set(toy.record("score")["outputs"]) == {"scores/a.txt", "scores/b.txt", "plots"}
    log = (toy.exp / "logs" / "1-train.log").read_text(encoding="utf-8")
    assert "attempt 1" in log and "train.steps=3, train.workers=0, train.optimiser.lr=0.001" in log
    assert log.count("INFO step") == 3
    assert toy.results() in (toy.exp / "logs" / "3-table.log").read_text(encoding="utf-8")  # what a stage prints
    assert "collar: 0.25" in (toy.exp / "conf.yaml").read_text(encoding="utf-8")


def test_a_changed_option_reruns_what_depends_on_it(toy):
    toy()
    changed = "configuration changed, train.optimiser.lr 0.001 -> 0.5"
    assert toy.plan("train.optimiser.lr=5e-1") == {
        "prepare": "up to date",
        "train": f"would run: {changed}",
        "score": "would run: its input model/best.txt will change",
        "table": "would run: its input scores/a.txt will change; its input scores/b.txt will change",
    }
    assert toy.ran("train.optimiser.lr=5e-1") == {
        "train": changed,
        "score": "its input model/best.txt has changed",
        "table": "its input scores/a.txt has changed; its input scores/b.txt has changed",
    }
    assert "lr 0.5" in toy.results() and "lr 0.001" not in toy.results()
    assert toy.ran("train.optimiser.lr=5e-1", "limit=3") == {}  # no stage declares limit
    assert toy.ran("collar=1", "train.optimiser.lr=0.5").keys() == {"score", "table"}


def test_an_option_without_effect_makes_nothing_stale(toy):
    toy()
    assert toy.ran("train.workers=2") == {}
    assert toy.ran("train.workers=2", "--stage", "score", "--force") == {"score": "forced", "table": "forced"}
    assert (
        toy.ran("train.workers=2", "train.optimiser.lr=0.5")["train"]
        == "configuration changed, train.optimiser.lr 0.001 -> 0.5"
    )


def test_a_stage_that_makes_the_same_again_changes_nothing_after_it(toy):
    toy()
    (toy.exp / "stages" / "train.json").unlink()
    assert list(toy.plan()) == ["prepare", "train", "score", "table"]
    assert toy.ran() == {"train": "no finished record"}


def test_a_copied_experiment_is_up_to_date(toy):
    toy()
    shutil.copytree(toy.exp, toy.folder / "copy", copy_function=shutil.copyfile)  # new modification times
    assert set(toy.plan("--exp", "copy").values()) == {"up to date"}


def damage_record(path, part, name, entry):
    record = json.loads(path.read_text(encoding="utf-8"))
    record[part][name] = entry
    path.write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize(
    "harm, reasons",
    [
        (
            lambda exp: (exp / "scores/b.txt").unlink(),
            {"score": "its output scores/b.txt is missing", "table": "its input scores/{a,b}.txt will change"},
        ),
        (lambda exp: (exp / "plots/a.png").write_text("painted over"), {"score": "its output plots has changed"}),
        (lambda exp: (exp / "scores/c.txt").write_text("more"), {"score": "its output scores/c.txt is new"}),
        (lambda exp: shutil.rmtree(exp / "plots"), {"score": "its output plots is missing"}),
        (lambda exp: os.truncate(exp / "stages/table.json", 20), {"table": "no finished record"}),
        (lambda exp: (exp / "stages/table.json").write_text("[]"), {"table": "no finished record"}),
        (lambda exp: damage_record(exp / "stages/table.json", "inputs", "scores/a.txt", 3), {"table": "no finished record"}),
        (
            lambda exp: damage_record(exp / "stages/table.json", "outputs", "results.txt", {"size": 3}),
            {"table": "no finished record"},
        ),
        (
            lambda exp: damage_record(
                exp / "stages/table.json", "inputs", "scores/a.txt", {"size": [], "stamp": {}, "hash": None}
            ),
            {"table": "no finished record"},
        ),
        (lambda exp: (exp / "stages/table.json").write_bytes(b"\xff\xfe"), {"table": "no finished record"}),
    ],
)
def test_damage_is_noticed_and_mended(toy, harm, reasons):
    toy()
    undisturbed = toy.results()
    harm(toy.exp)
    plan = {stage: text for stage, text in toy.plan().items() if text != "up to date"}
    for stage, reason in reasons.items():
        expected = reason if "{a,b}" not in reason else "; ".join(reason.replace("{a,b}", x) for x in "ab")
        assert plan[stage] == f"would run: {expected}"
    toy()
    assert toy.results() == undisturbed and set(toy.plan().values()) == {"up to date"}
    assert sorted(path.name for path in (toy.exp / "scores").iterdir()) == ["a.txt", "b.txt"]


def test_a_raised_version_reruns_a_stage(toy):
    toy()
    script = toy.folder / "run.py"
    script.write_text(script.read_text().replace('outputs=["results.txt"])', 'outputs=["results.txt"], version=2)'))
    assert toy.ran() == {"table": "its version changed, 1 -> 2"}


def test_stage_chooses_where_to_begin_and_end(toy):
    toy("--stop-stage", "1")
    assert not (toy.exp / "scores").exists()
    assert toy.ran("--stage", "score", "--stop-stage", "2") == {"score": "no finished record"}
    assert toy.ran("--stage", "2") == {"table": "no finished record"}
    assert toy.ran("--stage", "1", "--stop-stage", "train", "--force") == {"train": "forced"}
    assert toy.ran("--stage", "table", "--force") == {"table": "forced"}


def test_force_runs_everything_again(toy):
    toy()
    assert set(toy.plan("--force").values()) == {"would run: forced"}
    assert set(toy.ran("--force").values()) == {"forced"}


def test_missing_input_names_the_stage_that_makes_it(toy):
    message = "stage 2 score needs model/best.txt, which stage 1 train makes: run --stage "
    assert toy.error("--stage", "score") == message + "0 (stage 0 prepare comes before it and is not up to date either)"
    toy("--stop-stage", "prepare")
    assert toy.error("--stage", "score") == message + "1"
    assert toy.error("--stage", "score", "--dry-run") == message + "1"


def test_a_later_stage_does_not_build_on_a_stale_one(toy):
    toy("--profile", "mini")
    error = toy.error("--stage", "table", "--profile", "mini", "train.optimiser.lr=0.5")
    start = (
        "stage 3 table builds on stage 1 train, which is not up to date "
        "(configuration changed, train.optimiser.lr 0.001 -> 0.5): run "
    )
    assert error.startswith(start)
    mend = shlex.split(error[len(start) :])
    assert mend[-5:] == ["--profile", "mini", "--stage", "train", "train.optimiser.lr=0.5"]
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    subprocess.run(mend, cwd=toy.folder, check=True, stdout=subprocess.DEVNULL, env=environment)
    assert "lr 0.5" in toy.results()
    assert toy.ran("--stage", "table", "train.optimiser.lr=0.5") == {}


def test_deleted_intermediate_files_do_not_hold_up_later_stages(toy):
    toy()
    shutil.rmtree(toy.exp / "model")
    assert toy.ran("--stage", "table", "--force") == {"table": "forced"}
    (toy.exp / "scores" / "a.txt").write_text("by hand")
    assert toy.error("--stage", "table").startswith(
        "stage 3 table builds on stage 2 score, which is not up to date (its output scores/a.txt has changed): run "
    )


def test_profiles_and_experiment_folders(toy):
    toy("--profile", "quick")
    assert (toy.folder / "exp" / "quick" / "results.txt").read_text().count("step") == 4
    toy("--exp", "../other é", "--profile", "quick", "--stop-stage", "0")
    assert (toy.folder.parent / "other é" / "manifests").is_dir()
    assert toy.error("--profile", "quik") == "no profile 'quik'; profiles: mini, quick. Did you mean 'quick'?"


def test_a_relative_corpus_is_that_of_the_present_folder(toy, tmp_path):
    for name in ("one", "two", "mini"):
        (tmp_path / name / "corpus").mkdir(parents=True)
    flags = ("--exp", str(toy.exp), "--stop-stage", "0")
    toy("corpus=corpus", *flags, cwd=tmp_path / "one")
    assert toy.record("prepare")["config"] == {"corpus": str(tmp_path / "one" / "corpus")}
    changed = f"configuration changed, corpus {tmp_path / 'one' / 'corpus'} -> {tmp_path / 'two' / 'corpus'}"
    assert toy.ran("corpus=corpus", *flags, cwd=tmp_path / "two") == {"prepare": changed}
    for same in (tmp_path / "two" / "corpus", f"{tmp_path}/two//corpus/", "../two/corpus", "./corpus/"):
        assert toy.ran(f"corpus={same}", *flags, cwd=tmp_path / "two") == {}
    toy("corpus=mini", *flags, cwd=tmp_path)  # a name goes before a folder
    assert toy.record("prepare")["config"] == {"corpus": "mini"}


def test_the_folder_of_another_recipe_is_refused(toy):
    toy("--exp", "here", "--stop-stage", "0")
    script = toy.folder / "run.py"
    script.write_text(script.read_text().replace('Recipe("Toy recipe"', 'Recipe("Another recipe"'))
    message = "--exp here is a folder of the recipe 'Toy recipe': give another one"
    assert toy.error("--exp", "here") == toy.error("--exp", "here", "--dry-run") == message
    (toy.folder / "here" / ".recipe").unlink()  # of an older version
    assert toy.ran("--exp", "here", "--stop-stage", "1") == {"train": "no finished record"}
    assert (toy.folder / "here" / ".recipe").read_text() == "Another recipe\n"


def test_runs_from_any_folder(toy, tmp_path):
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    output, _ = toy(cwd=elsewhere)
    assert toy.results().count("step") == 6 and f"experiment folder {toy.exp}" in output
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--stage", "trian"], "no stage 'trian'; stages: 0 prepare, 1 train, 2 score, 3 table. Did you mean 'train'?"),
        (["--stage", "TRAIN"], "no stage 'TRAIN'; stages: 0 prepare, 1 train, 2 score, 3 table. Did you mean 'train'?"),
        (["--stop-stage", "9"], "no stage '9'; stages: 0 prepare, 1 train, 2 score, 3 table."),
        (["--stage", "2", "--stop-stage", "1"], "--stop-stage 1 comes before --stage 2: nothing to run"),
        (["train.optimiser.lrr=1"], "no option 'train.optimiser.lrr'; did you mean 'train.optimiser.lr'? (options: --help)"),
        (["train.steps=many"], "option 'train.steps' takes a whole number, got 'many'"),
        (["corpus=/nowhere"], "corpus=/nowhere: no such folder; expected mini or the folder of a corpus"),
        (["train"], "'train' is not an option: write key=value (options: --help; a stage: --stage train)"),
        (["--dryrun"], "no flag '--dryrun'; did you mean '--dry-run'? (flags: --help)"),
        (["--corpus", "x"], "no flag '--corpus': options have no dashes, write corpus=VALUE"),
        (["--steps=3"], "no flag '--steps=3'; did you mean 'train.steps'? (flags: --help)"),
        (["--stage"], "argument --stage: expected one argument (see --help)"),
        (["--exp", "conf"], "--exp conf holds other files and is no experiment folder: give a new or empty one"),
        (["--exp", "run.py"], "--exp run.py is a file, expected a folder"),
        (["note=" + os.fsdecode(b"caf\xe9")], r"note=caf\udce9: not UTF-8; rename the file or folder"),
        (["collar=nan"], "collar=nan: expected at least 0"),
        (["--exp", "run.py/x"], "experiment folder run.py/x: Not a directory: "),
    ],
)
def test_mistakes_are_answered_in_one_line(toy, arguments, message):
    error = toy.error(*arguments)
    assert error == message or message.endswith(": ") and error.startswith(message)
    assert not (toy.folder / "exp").exists()


def test_an_experiment_folder_that_is_not_utf8(toy):
    assert toy.error("--exp", os.fsdecode(b"caf\xe9")).endswith(r"caf\udce9: not UTF-8; rename the file or folder")
    assert b"caf\xe9" not in os.listdir(os.fsencode(toy.folder))


def test_characters_that_do_not_print(toy):
    text = "a\nb\u2028c \x1b ä"
    toy(f"note={text}", "--stop-stage", "0")
    loaded = OmegaConf.load(toy.exp / "conf.yaml")
    assert loaded.note == text
    assert r"a\nb\u2028c \x1b ä" in (toy.exp / "conf.yaml").read_text(encoding="utf-8").splitlines()[0]


def test_options_may_stand_anywhere(toy):
    assert toy.plan("collar=1", "--stop-stage", "1", "train.steps=2", "--exp", "x") == {"prepare": NEW, "train": NEW}


def test_help_shows_everything(toy):
    output, _ = toy("--help", "--profile", "quick")
    for text in (
        "Toy recipe",
        "--stop-stage",
        "--dry-run",
        "profiles: mini, quick",
        "Corpus to manifests.",
        "1 train    Train; goes on from the newest step. [1 CPU, 1 GPU, 4 GB, 12 h]",
        "train.steps=2 ",
        "how many updates of the weights [int]",
        "learning rate of Adam after the warm-up [float]",
        "seconds around a boundary that do not count",
    ):
        assert text in " ".join(output.split()) or text in output, text
    assert toy("--list")[0].splitlines()[0] == "   0 prepare  Corpus to manifests. [2 CPUs, 4 GB, 1 h]"


def test_a_failure_shows_its_end_the_log_and_how_to_go_on(toy):
    output, errors = toy("--profile", "mini", "collar=2", TOY_FAIL="raise RuntimeError('out of luck')", status=1)
    assert "RuntimeError: out of luck" in errors and "toy_recipe" not in output
    assert "stage 2 score failed: RuntimeError: out of luck" in errors
    lines = errors.splitlines()
    assert lines[-2] == f"log: exp{os.sep}mini{os.sep}logs{os.sep}2-score.log"
    resume = shlex.split(lines[-1].split("with: ")[1])
    assert resume[-3:] == ["--profile", "mini", "collar=2"]
    log = (toy.exp / "logs" / "2-score.log").read_text(encoding="utf-8")
    assert "Traceback" in log and "RuntimeError: out of luck" in log and "run.py" in log
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    assert subprocess.run(resume, cwd=toy.folder, stdout=subprocess.DEVNULL, env=environment).returncode == 0
    assert toy.results().count("2.0") == 2
    assert "attempt 1" in log and "attempt 1," in (toy.exp / "logs" / "2-score.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "failure, message",
    [
        ("raise UserError('file x: found y, expected z')", "file x: found y, expected z"),
        ("open('/dev/full', 'w').write('x' * 100000)", "No space left on device"),
        ("raise PermissionError(13, 'Permission denied', '/data/x')", "Permission denied: /data/x"),
    ],
)
def test_what_the_user_can_mend_comes_without_a_traceback(toy, failure, message):
    output, errors = toy(TOY_FAIL=failure, status=1)
    assert len(errors.splitlines()) == 3 and f"stage 2 score failed: {message}\n" in errors
    assert "Traceback" in (toy.exp / "logs" / "2-score.log").read_text(encoding="utf-8")


def test_what_a_failed_stage_has_half_written_goes(toy):
    """A process that is ended because another has failed cannot tidy up."""
    left = "manifests/.4242424242.tmp.train.txt"
    toy(TOY_FAIL=f"(exp.dir / '{left}').write_text('half'); raise UserError('no space')", status=1)
    assert (toy.exp / left).exists()
    toy()
    assert not (toy.exp / left).exists() and toy.ran() == {}


def test_warnings_and_thread_exceptions_go_to_the_log(toy):
    failure = (
        "import warnings, threading; warnings.warn('odd'); "
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()"
    )
    output, errors = toy(TOY_FAIL=failure)
    log = (toy.exp / "logs" / "2-score.log").read_text(encoding="utf-8")
    assert "UserWarning: odd" in log and "ZeroDivisionError" in log and "odd" not in output + errors


def test_a_stage_must_make_what_it_declares(toy):
    script = toy.folder / "run.py"
    script.write_text(script.read_text().replace('outputs=["results.txt"]', 'outputs=["{results,more}.txt"]'))
    errors = toy(status=1)[1]
    assert "stage 3 table failed: it ended without making more.txt, which it declares as output" in errors
    assert toy.plan()["table"] == "would run: it did not finish"


def test_an_input_from_outside(toy, tmp_path):
    lexicon = tmp_path / "lexicon.txt"
    script = toy.folder / "run.py"
    script.write_text(
        script.read_text().replace(
            'recipe.stage(config=["corpus"],', (f'recipe.stage(config=["corpus"], inputs=lambda conf: [{str(lexicon)!r}],')
        )
    )
    assert toy.error("--stop-stage", "0").startswith(f"stage 0 prepare needs {lexicon}, which is not there")
    lexicon.write_text("a")
    toy()
    lexicon.write_text("b b")
    assert toy.ran() == {"prepare": f"its input {lexicon} has changed"}
    assert lexicon.exists()


def test_an_input_that_changes_while_its_stage_runs(toy):
    toy(TOY_FAIL="(exp.dir / 'manifests/dev.txt').write_text('something else')")
    recorded = toy.record("score")["inputs"]["manifests/dev.txt"]
    assert recorded == toy.record("train")["inputs"]["manifests/dev.txt"] and recorded["size"] == len("mini dev\n")
    assert toy.ran().keys() == {"prepare"}  # which makes it as it was


def test_output_pipe_closed_early(toy):
    process = toy.start("--help")
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait() in (0, 1)
    process.stderr.close()


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_streams_that_are_closed(toy, closed, jobs):
    result = subprocess.run(
        ["bash", "-c", f'"$0" "$@" {closed}', sys.executable, "run.py", "--jobs", jobs],
        cwd=toy.folder,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert toy.results().count("step") == 6
    assert toy.results() in (toy.exp / "logs" / "3-table.log").read_text(encoding="utf-8")


def test_a_present_folder_that_has_been_removed(toy, tmp_path):
    (tmp_path / "gone").mkdir()
    result = subprocess.run(
        ["bash", "-c", 'cd "$0" && rmdir "$0" && "$@"', tmp_path / "gone", sys.executable, toy.folder / "run.py"],
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1 and result.stderr == "the current folder has been removed: go to another one\n"


def test_a_lost_terminal_does_not_end_the_run(toy):
    process = toy.start(TOY_SLEEP="0.1")
    assert process.stdout.readline() == "Toy recipe\n"
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert "Error" not in errors, errors
    assert toy.results().count("step") == 6


# Declarations


@dataclass
class Inner:
    lr: float = 0.1

    def check(self):
        requirement("training", self)("lr", self.lr > 0, "a positive number")


@dataclass
class Config:
    corpus: str = "mini"
    train: Inner = field(default_factory=Inner)


def nothing(exp, conf):
    """Nothing."""


def test_mistakes_in_a_declaration_are_found_at_once():
    recipe = Recipe("x", Config)
    with pytest.raises(ValueError, match="stage 0 nothing: config names 'train.lrr', .* did you mean 'train.lr'"):
        recipe.stage(config=["train.lrr"])(nothing)
    recipe.stage(config=["train", "corpus", "train.lr"])(nothing)
    with pytest.raises(ValueError, match="two stages are named 'nothing'"):
        recipe.stage()(nothing)
    for declared in ({"config": "train"}, {"inputs": "a"}, {"outputs": "a"}, {"scratch": "a"}):
        with pytest.raises(ValueError, match=r"stage b: \w+='\w+': expected a list"):
            recipe.stage(name="b", **declared)(nothing)
    with pytest.raises(TypeError):
        recipe.stage(name="b", ouputs=["a"])(nothing)


@pytest.mark.parametrize(
    "first, second, message",
    [
        ({"outputs": ["a/*.txt"]}, {"outputs": ["a/b.txt"]}, "stage 1 two and stage 0 one both make a/b.txt"),
        ({"outputs": ["a/b.txt"]}, {"scratch": ["a"]}, "both make a"),
        ({"inputs": ["m"], "outputs": ["a"]}, {"outputs": ["m", "a"]}, "both make a"),
        ({"inputs": ["m"]}, {"outputs": ["m/x"]}, "stage 0 one reads m, which stage 1 two makes"),
        ({"inputs": ["m"], "outputs": ["m"]}, {}, "stage 0 one reads m, which stage 0 one makes"),
    ],
)
def test_stages_that_contradict_each_other(tmp_path, first, second, message):
    recipe = Recipe("x", Config, conf=tmp_path / "conf")
    recipe.stage(name="one", **first)(nothing)
    recipe.stage(name="two", **second)(nothing)
    with pytest.raises(ValueError, match=message):
        recipe.main(["--dry-run"])


def test_a_nested_configuration_without_check_is_a_mistake_in_the_recipe():
    @dataclass
    class Unchecked:
        lr: float = 0.1

    @dataclass
    class Outer:
        inner: Unchecked = field(default_factory=Unchecked)

        def check(self):
            pass

    @dataclass
    class Whole:
        train: Inner = field(default_factory=Inner)
        outer: Outer = field(default_factory=Outer)

    with pytest.raises(ValueError, match="^Unchecked: has no method 'check'"):
        Recipe("x", Whole)


@dataclass
class Voices:
    corpus: str = folder_or("mini", "prompts", what="a corpus")
    language: str = ""


@pytest.mark.parametrize("gpu", [False, True])
def test_profile_and_name_go_by_the_corpus(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspeech.engine.main.has_gpu", lambda: gpu)
    monkeypatch.setitem(sys.modules, "pyspeech.compat", types.SimpleNamespace(describe_environment=lambda: "here"))
    real = "full" if gpu else "small"
    (tmp_path / "conf").mkdir()
    for profile in ("mini", "small", "full"):
        (tmp_path / "conf" / f"{profile}.yaml").write_text("")
    corpus = tmp_path / "data" / "FSC"
    corpus.mkdir(parents=True)
    (tmp_path / "link").symlink_to(corpus)
    recipe = Recipe("x", Voices, conf=tmp_path / "conf", profile="mini", part="language")
    recipe.stage(outputs=["made"])(lambda exp, conf: (exp.dir / "made").write_text("x"))

    def name(*arguments):
        exp = recipe.main(list(arguments))
        assert exp.dir.parent == tmp_path / "exp" and exp.dir.name.endswith(exp.profile)
        return exp.dir.name

    assert name() == name("corpus=mini") == name("language=English") == "mini" and name("--profile", "full") == "full"
    assert name("corpus=prompts") == "prompts-mini"
    assert name(f"corpus={corpus}") == name(f"corpus={tmp_path / 'link'}") == f"FSC-{real}"
    assert name(f"corpus={corpus}", "language=English") == f"FSC-english-{real}"
    assert name(f"corpus={corpus}", "--profile", "mini") == "FSC-mini"
    (tmp_path / "conf" / f"{real}.yaml").unlink()
    assert name(f"corpus={corpus}") == "FSC-mini"  # no such profile, whatever the other one


@dataclass
class Places:
    corpus: str = folder_or("mini", what="a corpus", file=True)
    test: dict[str, str] = named_folders("a corpus")
    real: list[str] = list_of_folders("recordings")


def test_files_and_named_folders(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspeech.compat", types.SimpleNamespace(describe_environment=lambda: "here"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.tsv").write_text("path\n")
    (tmp_path / "wild").mkdir()
    recipe, given = Recipe("x", Places, conf=tmp_path), {}
    recipe.stage(config=["corpus", "test", "real"], outputs=["made"])(
        lambda exp, conf: ((exp.dir / "made").write_text("x"), given.update(vars(conf)))
    )
    for arguments in (["test.wild=wild/", "test.b=wild"], ["test={wild: wild/, b: wild}"]):
        recipe.main(["corpus=list.tsv", "real=[wild/, wild]", *arguments, "--force"])
        wild = str(tmp_path / "wild")
        assert given == {"corpus": str(tmp_path / "list.tsv"), "test": {"wild": wild, "b": wild}, "real": [wild, wild]}
    for option, message in (
        ("test.wild=list.tsv", "test.wild=list.tsv: no such folder; expected the folder of a corpus"),
        ("real=[wild, nowhere]", "real=nowhere: no such folder; expected the folder of recordings"),
        ("corpus=nowhere", "corpus=nowhere: no such folder or file; expected mini or the folder of a corpus"),
    ):
        with pytest.raises(UserError, match=message):
            run_command(recipe, [option])


def test_options_are_checked_before_anything_else(toy):
    """Whatever else is wrong, and --dry-run too; nothing is removed."""
    toy()
    before = {path: path.stat().st_mtime_ns for path in toy.folder.rglob("*")}
    for option, message in (
        ("train.steps=-1", "train.steps=-1: expected at least 0"),
        ("train.optimiser.lr=0", "train.optimiser.lr=0.0: expected a positive number"),
        ("collar=-1", "collar=-1.0: expected at least 0"),
        ("corpus=", "corpus=: no such folder; expected mini or the folder of a corpus"),
    ):
        for arguments in ((), ("--dry-run",), ("--force",), ("--stage", "table"), ("--exp", "run.py")):
            assert toy.error(*arguments, option) == message
    assert {path: path.stat().st_mtime_ns for path in toy.folder.rglob("*")} == before


def test_main_gives_the_experiment_once_its_last_stage_is_done(tmp_path, monkeypatch):
    """So that a recipe shows no table of an earlier run."""
    monkeypatch.setitem(sys.modules, "pyspeech.compat", types.SimpleNamespace(describe_environment=lambda: "here"))
    (tmp_path / "conf").mkdir()
    recipe = Recipe("x", Config, conf=tmp_path / "conf")
    for number in (1, 2):
        recipe.stage(name=f"make{number}", outputs=[f"{number}.txt"])(
            lambda exp, conf, number=number: (exp.dir / f"{number}.txt").write_text("x")
        )
    assert recipe.main(["--stop-stage", "make1"]) is None
    assert recipe.main([]).dir == recipe.main(["--stage", "make2"]).dir == tmp_path / "exp" / "default"
    assert recipe.main(["--stop-stage", "0"]) is None and recipe.main(["--dry-run"]) is None
