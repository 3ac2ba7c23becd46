"""utils/bench/benchmark.py on little work, what it measures of a training, and its tables."""

import json
import logging
import runpy

import pytest
import torch
from recipe_harness import ROOT
from tool_harness import assert_usage_error, one_line_error, run_tool

from pyspeech.errors import UserError
from pyspeech.training.config import TrainConfig
from steps.benchmark.parts import DECODING, FEATURES, first_items, train_steps
from steps.benchmark.plans import PLANS, Training
from steps.benchmark.report import cells, report, report_comparison
from utils.bench import benchmark

LITTLE = [
    "--recipes",
    "fearless",
    "--sizes",
    "mini",
    "--parts",
    "features",
    "--rounds",
    "1",
    "--repeats",
    "2",
    "--seconds",
    "0.01",
]


@pytest.mark.slow
def test_measured_and_compared(tmp_path, capsys):
    done = run_tool("bench/benchmark", *LITTLE, "--processes", "1", "2", "-o", tmp_path / "a")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "a.json").read_text())
    one, two = (found["lines"][f"fearless mini features {number}"] for number in (1, 2))
    assert one["work"] == two["work"] and one["proof"] == pytest.approx(two["proof"]) and one["audio_seconds"] == 360
    assert len(one["seconds"]) == 2 and one["calls"] >= 1 and one["host_gigabytes"] > 0.05 and found["complete"]
    assert found["machine"]["commit"] and "these figures are for a trial" in done.stdout
    assert "| fearless mini features 2 |" in (tmp_path / "a.md").read_text()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    two["work"]["features.shift"] = 80
    (tmp_path / "b.json").write_text(json.dumps({**found, "lines": {"fearless mini features 1": one}}))
    (tmp_path / "c.json").write_text(json.dumps(found))
    a, b, c = (str(tmp_path / f"{name}.json") for name in "abc")
    assert benchmark.main(["--compare", a, b, a, "-o", str(tmp_path / "d")]) == 0
    text = capsys.readouterr().out
    assert "No difference in 1 of 1 lines." in text and "No difference in 2 of 2 lines." in text
    assert "alone has it: fearless mini features 2." in text and (tmp_path / "d.png").exists()
    with one_line_error("a and c: 'fearless mini features 2' is other work: features.shift 160 -> 80"):
        benchmark.main(["--compare", a, c])


class Rows:
    def __getitem__(self, rows):
        return torch.tensor(rows, dtype=torch.float32)[:, None]


def square(model, batch):
    return (model(batch) - 1).square().mean(), {}


def little_training():
    config = TrainConfig(max_epochs=3, lr=0.1, warmup_steps=5, schedule="cosine", max_steps=9, valid_every=2, patience=3)
    return Training(lambda: torch.nn.Linear(1, 1), Rows(), [[0, 1], [2, 3], [4]], square, config, None)


def test_steps_of_a_training(tmp_path):
    """The losses of the first steps are those of a plain loop over the same batches."""
    training = little_training()
    config = training.config
    found = train_steps(training, tmp_path, 2, repeats=3, seconds=0.01, log=logging.getLogger("test"))
    assert len(found["seconds"]) == len(found["cpu_seconds"]) == 3 and min(found["seconds"] + found["cpu_seconds"]) > 0
    assert 0 <= found["waiting"] <= 1 and found["device_gigabytes"] is None
    from pyspeech.training.optimization import make_optimizer
    from pyspeech.training.randomness import seed_everything

    seed_everything(config.seed)
    model = torch.nn.Linear(1, 1)
    optimizer, losses = make_optimizer(model, config), []
    for _ in range(4):
        loss = sum(square(model, Rows()[rows])[0] for rows in ([0, 1], [2, 3])) / 2
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    assert found["proof"] == pytest.approx(losses)


def test_first_items_begin_again():
    assert first_items([1, 2, 3], 5) == [1, 2, 3, 1, 2] and first_items(iter([1, 2, 3]), 2) == [1, 2]


@pytest.mark.parametrize("recipe", PLANS)
def test_its_options_are_the_recipes(recipe):
    """They exist at each size, and change with the part what counts as its work."""
    options = benchmark.parser().parse_args([])
    loaded = runpy.run_path(str(ROOT / "egs" / recipe / "run.py"))["recipe"]
    assert recipe in FEATURES and recipe in DECODING and recipe in benchmark.SCALES
    for size in benchmark.SIZES:
        settings = benchmark.settings_of(recipe, ROOT, options)
        loaded.configure(size, settings)
        works = {part: benchmark.work_of(recipe, size, part, settings, options) for part in ("features", "training")}
        assert "train.lr" in works["training"] and "train.lr" not in works["features"]
        assert "train.num_workers" not in works["training"] and "corpus" not in works["training"]


def result(*seconds, processes=1, **changes):
    values = {"work": {}, "seconds": list(seconds), "cpu_seconds": list(seconds), "audio_seconds": 60.0, "proof": [2.5]}
    values = {**values, "processes": processes, "pressure": 20.0, "waiting": None, "device": "cpu"}
    return {**values, "host_gigabytes": 1.0, "device_gigabytes": None, **changes}


def test_tables():
    lines = {"x 1": result(3.0, 2.0, 4.0), "x 2": result(2.0, 2.0, 2.0, processes=2), "y 1": {"problem": "it stopped"}}
    row = cells("x 2", lines["x 2"], lines)
    assert row[1] == "2" and row[5:8] == ["0.0333", "30", "75"] and row[-1] == "disturbed (20 % pressure)"
    machine = {"host": "h", "cpu": "c", "cores": 2, "memory_gigabytes": 8.0, "gpus": ["A", "A"], "system": "s", "commit": "",
               "versions": {}}  # fmt: skip
    whole = {"machine": machine, "lines": lines, "threads": 1, "device": "CPU"}
    text = report({**whole, "rounds": 4, "repeats": 2, "seconds": 5.0, "least_seconds": 5.0})
    assert "y 1: it stopped" in text and "2 GPUs (A)" in text and "for a trial" not in text and "commit unknown" in text
    found, others = benchmark.compare((whole, whole), ("A", "B"))
    text = report_comparison(whole, whole, ("A", "B"), found, others)
    assert "No difference in 2 of 2 lines." in text and "alone has it: y 1." in text


def test_mistakes(tmp_path, capsys):
    assert_usage_error(capsys, benchmark.main, ["--repeats", "0"], "0 is not a whole number of 1 or more")
    with one_line_error("expected two files or more"):
        benchmark.main(["--compare", str(tmp_path / "a.json")])
    (tmp_path / "a.json").write_text("[]")
    with one_line_error("a.json: expected results of this tool"):
        benchmark.main(["--compare", str(tmp_path / "a.json"), str(tmp_path / "a.json")])
    with one_line_error("--cluster: expected -o NAME too"):
        benchmark.main(["--cluster", "slurm"])
    with one_line_error("--batches 2: expected at least one a process, 4"):
        benchmark.main(["--batches", "2", "--processes", "4", "--device", "cpu"])


def test_arguments_of_the_job():
    given = ["-o", "x", "--cluster", "slurm", "--partition=gpu", "--sizes", "mini"]
    assert benchmark.without(given, "--cluster", "--partition") == ["-o", "x", "--sizes", "mini"]


def train_by_two(number, folder, queue):
    from pyspeech.training import distributed

    distributed.join(distributed.Place(number, 2, number))
    found = train_steps(little_training(), folder, 2, repeats=2, seconds=0.01, log=logging.getLogger("test"))
    queue.put((number, found["proof"], len(found["cpu_seconds"])))
    distributed.leave()


def test_steps_of_a_training_by_two_processes(tmp_path, monkeypatch):
    """The same losses as by one."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=train_by_two, args=(number, tmp_path / "two", queue)) for number in range(2)]
    for process in processes:
        process.start()
    found = [queue.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    alone = train_steps(little_training(), tmp_path / "one", 2, repeats=2, seconds=0.01, log=logging.getLogger("test"))
    assert all(proof == pytest.approx(alone["proof"]) and repeats == 2 for _, proof, repeats in found)


def test_jobs_of_results_in_two_folders_are_two(tmp_path, monkeypatch):
    """Else the second command would follow the job of the first."""
    names = []
    monkeypatch.setattr(benchmark, "run_one_job", lambda queue, site, job, command: names.append(job.name))
    for folder in ("a", "b", "a"):
        with pytest.raises(UserError, match="the job has left no .*/there.json"):
            benchmark.main(["--cluster", "slurm", "-o", str(tmp_path / folder / "there")])
    assert names[0] == names[2] != names[1]


def test_a_job_never_submits_itself(capsys, monkeypatch):
    """Flags are not abbreviated: the command of the job is that of the user without --cluster."""
    given = ["--cluster", "slurm", "--gpus", "1", "--partition=gpu"]
    assert benchmark.without(given, "--cluster", "--partition") == ["--gpus", "1"]
    monkeypatch.setattr(benchmark, "run_one_job", lambda *job: pytest.fail("submitted"))
    with pytest.raises(SystemExit):
        benchmark.main(["--clu", "slurm", "-o", "there"])
    assert "unrecognized arguments: --clu" in capsys.readouterr().err
