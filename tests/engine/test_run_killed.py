"""Runs that end before their end: kill -9 anywhere, signals, a crash. The same command goes on each time."""

import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import time

import pytest
from kill_harness import kill_at_event
from toy_harness import Toy, repository


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path / "ré cipe [1]")


def files_of(exp):
    """{name: content} of what the stages made; not of logs, records and the lock."""
    return {
        str(path.relative_to(exp)): path.read_bytes()
        for path in sorted(exp.rglob("*"))
        if path.is_file() and path.relative_to(exp).parts[0] not in ("logs", "stages", ".lock", "conf.yaml")
    }


@pytest.mark.slow
def test_killed_at_every_second_change_of_a_file(toy):
    """Each run has a new folder and is killed two changes later than the one before; the same command finishes it."""
    toy()
    undisturbed = files_of(toy.exp)
    for number in range(1, 1000, 2):
        folder = toy.folder / f"killed{number}"
        status = toy.run("--exp", folder.name, before=lambda: kill_at_event(folder, number))[0]
        if status == 0:
            break
        assert status == -signal.SIGKILL
        toy("--exp", folder.name)
        assert files_of(folder) == undisturbed, f"killed at change {number}"
    assert 40 < number < 1000


@pytest.mark.slow
def test_killed_at_every_change_of_a_file_after_another_option(toy):
    """What is left of a run with other options is never resumed, wherever the kill comes."""
    toy()
    toy("train.optimiser.lr=0.5", "--exp", "undisturbed", "--stop-stage", "train")
    undisturbed = files_of(toy.folder / "undisturbed")
    for number in range(1, 1000):
        folder = toy.folder / f"killed{number}"
        shutil.copytree(toy.exp, folder)
        arguments = ("train.optimiser.lr=0.5", "--exp", folder.name, "--stop-stage", "train")
        status = toy.run(*arguments, before=lambda: kill_at_event(folder, number))[0]
        if status == 0:
            break
        assert status == -signal.SIGKILL
        toy(*arguments)
        made = {name: data for name, data in files_of(folder).items() if name in undisturbed}
        assert made == undisturbed, f"killed at change {number}"
    assert 20 < number < 1000


def test_killed_again_and_again_with_changed_options(toy):
    """Random kills, and another option now and then: a run that ends makes what an undisturbed one makes."""
    rates = {"train.optimiser.lr=0.5", "train.optimiser.lr=0.25"}
    undisturbed = {}
    for rate in sorted(rates):
        toy(rate, "--exp", rate)
        undisturbed[rate] = files_of(toy.folder / rate)
    generator = random.Random(7)
    finished = 0
    for _ in range(30):
        rate = generator.choice(sorted(rates))
        event = generator.randint(1, 60)
        status, output, errors = toy.run(rate, before=lambda: kill_at_event(toy.exp, event))
        assert status in (0, -signal.SIGKILL), output + errors
        if status == 0:
            finished += 1
            assert files_of(toy.exp) == undisturbed[rate]
    assert 2 < finished < 28


def test_killed_from_outside(toy):
    toy()
    undisturbed = files_of(toy.exp)
    generator = random.Random(3)
    for _attempt in range(4):
        process = toy.start("--exp", "outside", TOY_SLEEP="0.1")
        time.sleep(generator.uniform(0.3, 1.0))
        process.kill()
        process.communicate()
    toy("--exp", "outside")
    assert files_of(toy.folder / "outside") == undisturbed


def kill_at_step(number):
    """Before a command: kill -9 it after this many log lines of the stage `train`."""
    import logging

    seen = [0]

    def count(record):
        seen[0] += record.getMessage().startswith("step ")
        if seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    logging.getLogger("pyspeech.stage").addFilter(count)


def test_a_resumable_stage_goes_on(toy):
    assert toy.run(before=lambda: kill_at_step(2))[0] == -signal.SIGKILL
    assert toy.plan()["train"] == "would run: it did not finish; goes on where it stopped"
    output, _ = toy()
    assert "INFO step 3" in output and "INFO step 2" not in output
    assert toy.record("train")["attempts"] == 2
    log = (toy.exp / "logs" / "1-train.log").read_text(encoding="utf-8")
    assert "attempt 1" in log and "attempt 2" in log and log.count("INFO step") == 2  # killed before it logged 2


@pytest.mark.parametrize("arguments", [["train.optimiser.lr=0.5"], ["--force"]])
def test_partial_state_of_something_else_is_not_resumed(toy, arguments):
    """The toy itself asserts that nothing is left where it starts from nothing."""
    assert toy.run(before=lambda: kill_at_step(2))[0] == -signal.SIGKILL
    if arguments != ["--force"]:
        assert toy.plan(*arguments)["train"] == (
            "would run: it did not finish; configuration changed, train.optimiser.lr 0.001 -> 0.5"
        )
    assert toy(*arguments)[0].count("INFO step") == 3
    assert toy.record("train")["attempts"] == 1
    assert toy.results().count("step") == 6


def test_partial_state_is_resumed_with_another_option_that_has_no_effect(toy):
    assert toy.run(before=lambda: kill_at_step(2))[0] == -signal.SIGKILL
    assert toy.ran("train.workers=2")["train"] == "it did not finish; goes on where it stopped"
    assert toy.record("train")["attempts"] == 2 and toy.record("train")["config"]["train.workers"] == 2


def test_a_stage_that_has_begun_is_not_finished(toy):
    toy()
    assert toy.run("train.optimiser.lr=0.5", before=lambda: kill_at_step(2))[0] == -signal.SIGKILL
    assert sorted(path.name for path in (toy.exp / "stages").iterdir()) == [
        "prepare.json",
        "score.json",
        "table.json",
        "train.attempt.json",
    ]


def test_partial_state_of_other_inputs_is_not_resumed(toy, tmp_path):
    (tmp_path / "corpus").mkdir()
    assert toy.run(before=lambda: kill_at_step(2))[0] == -signal.SIGKILL
    assert toy(f"corpus={tmp_path / 'corpus'}", "--exp", "exp/mini")[0].count("INFO step") == 3
    assert "mini" not in toy.results()


def test_a_forced_run_that_was_interrupted_is_finished_without_force(toy):
    toy()
    status, _, errors = toy.run("--force", before=lambda: kill_at_step(2))
    assert status == -signal.SIGKILL
    assert toy.ran() == {
        "train": "it did not finish; goes on where it stopped",
        "score": "no finished record",
        "table": "no finished record",
    }


def wait_for(process, text):
    """Read the output of a process up to a line with this text."""
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"no '{text}': {process.stderr.read()}")


@pytest.mark.parametrize("signum, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR2, 140)])
def test_a_signal_ends_the_run_with_the_command_to_go_on(toy, signum, status):
    process = toy.start("--profile", "mini", "collar=1", **toy.hold(1))
    wait_for(process, "INFO step 1")
    process.send_signal(signum)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert "WARNING stage 1 train: interrupted" in output and "Traceback" not in output + errors
    log_line, resume_line = errors.splitlines()
    assert log_line == f"log: exp{os.sep}mini{os.sep}logs{os.sep}1-train.log"
    assert "Traceback" in (toy.exp / "logs" / "1-train.log").read_text(encoding="utf-8")
    resume = shlex.split(resume_line.split("go on with: ")[1])
    assert (toy.exp / ".lock").read_text() == ""
    result = subprocess.run(
        resume, cwd=toy.folder, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(repository)}
    )
    assert "INFO step 1" not in result.stdout and "INFO step 2" in result.stdout and "1.0" in toy.results()


def test_a_stage_that_handles_sigterm_is_left_to_it(toy):
    script = toy.folder / "run.py"
    script.write_text(
        script.read_text()
        .replace(
            "    while history.count(",
            (
                "    import signal\n    told = []\n    signal.signal(signal.SIGTERM, lambda *_: told.append(1))\n"
                "    while history.count("
            ),
        )
        .replace(
            'exp.log.info("step %d"',
            ('if told:\n            raise KeyboardInterrupt("saved at the step")\n        exp.log.info("step %d"'),
        )
    )
    process = toy.start("train.steps=1000", TOY_SLEEP="0.05")
    wait_for(process, "INFO step 2")
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert "stage 1 train: interrupted (saved at the step)" in output


def test_forked_workers_die_of_sigterm_as_usual(toy):
    """Also of one that comes before they are ready."""
    failure = """
import multiprocessing, time
for _ in range(20):
    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
    worker.start()
    worker.terminate()
    worker.join()
    assert worker.exitcode == -15, worker.exitcode
"""
    assert toy(TOY_FAIL=failure)[1] == ""


def test_a_second_run_on_the_same_folder_is_refused(toy):
    first = toy.start("collar=1", **toy.hold(0))
    wait_for(first, "stage 1 train: runs")
    error = toy.error("collar=2")
    assert f"is in use by process {first.pid} on {socket.gethostname()} since " in error and "run.py collar=1;" in error
    toy("--exp", "other", "--stop-stage", "0")  # another folder is free
    toy("--dry-run")  # looking is allowed
    toy.hold(3)
    first.communicate(timeout=60)
    assert first.returncode == 0 and toy.results().count("1.0") == 2


def test_the_lock_of_a_killed_run_is_taken_over(toy):
    assert toy.run(before=lambda: kill_at_step(1))[0] == -signal.SIGKILL
    assert (toy.exp / ".lock").stat().st_size > 0
    output, _ = toy()
    assert "taking over the lock of process" in output
    assert "taking over" not in toy("--force")[0]


def test_two_runs_that_start_together(toy):
    processes = [toy.start(TOY_SLEEP="0.1") for _ in range(3)]
    results = [process.communicate(timeout=60) for process in processes]
    statuses = sorted(process.returncode for process in processes)
    assert statuses[0] == 0 and set(statuses) <= {0, 1}
    assert all("is in use by" in errors for (_, errors), process in zip(results, processes, strict=True) if process.returncode)


def test_a_crash_in_a_native_library_is_in_the_log(toy):
    status, *_ = toy.run(TOY_FAIL="import faulthandler; faulthandler._sigsegv()")
    assert status == -signal.SIGSEGV
    log = (toy.exp / "logs" / "2-score.log").read_text(encoding="utf-8")
    assert "Segmentation fault" in log and "in score" in log
    toy()


def test_a_killed_writer_leaves_no_half_files(toy):
    assert toy.run(before=lambda: kill_at_step(2))[0] == -signal.SIGKILL
    leftover = toy.exp / "model" / ".77.tmp.history.txt"
    leftover.write_text("half")
    toy()
    assert not leftover.exists()


def test_signals_outside_the_main_thread(toy):
    """A recipe may be run from a thread, where Python allows no signal handlers."""
    script = toy.folder / "run.py"
    script.write_text(
        script.read_text().replace(
            "    recipe.main()",
            ("    import threading\n    thread = threading.Thread(target=recipe.main)\n    thread.start()\n    thread.join()"),
        )
    )
    toy()
    assert toy.results().count("step") == 6
