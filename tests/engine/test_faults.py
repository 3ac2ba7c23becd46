"""What goes wrong on shared machines: one clear line, and a state from which the same command goes on to the same results.

The table says which test shows it, of those here and elsewhere.

    disk full                   here, at every change of a file; test_run.py (test_what_the_user_can_mend...),
                                test_files.py (what soundfile and numpy make of it), test_compat.py (a checkpoint),
                                features/test_frame_store.py (before it begins), test_setup.py, fetch/test_download.py
    folder read-only            here
    file late                   here
    manifest, missing file      sad/, asr/ and spoof/test_dataset.py; here: units
    feature archive corrupt     features/test_frame_store.py; units/test_features_files.py; Kaldi's: kaldi/test_rules.py
    checkpoint cut short        training/test_resume.py (test_damaged_checkpoint...); results: test_model_file.py
    checkpoint, other model     training/test_resume.py (test_refuses_what_it_cannot_go_on_from), test_model_file.py
    two runs on one folder      test_run_killed.py, test_locks.py; as jobs: test_cluster.py
    clock that jumps            here; locks of other machines: test_locks.py
    worker killed for memory    here: of a training; test_workers.py, test_parallel.py; a job: test_cluster.py
    NaN in training             training/test_trainer.py; of a transducer: asr/test_loss.py
    whole recipes of egs/       killed every few seconds, write errors, as disturbed jobs: kill_recipe.py, by hand
    node lost, driver killed, job cancelled, preempted, over its time      test_cluster.py; of a recipe: egs/test_fearless.py
"""

import errno
import itertools
import os
import shutil
import signal
import sys
import threading
import time

import pytest
from kill_harness import full_at_event
from tool_harness import one_line_error
from toy_harness import Toy

from pyspeech.engine import job
from pyspeech.training.data import BatchLoader


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The results of an undisturbed run."""
    toy = Toy(tmp_path_factory.mktemp("local") / "toy")
    toy()
    return toy.results()


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path / "toy")


def fail_from_change(folder, number, code):
    """Before a command: from its `number`-th attempt on at making or renaming something below `folder`, each fails."""
    seen = [0]

    def hook(event, arguments):
        makes = event in ("os.rename", "os.mkdir") or event == "open" and arguments[2] & (os.O_CREAT | os.O_TRUNC)
        if makes and not isinstance(arguments[0], int) and os.path.abspath(os.fsdecode(arguments[0])).startswith(str(folder)):
            seen[0] += 1
            if seen[0] >= number:
                raise OSError(code, os.strerror(code), os.fsdecode(arguments[0]))

    sys.addaudithook(hook)


def assert_explained(status, output, errors, reason):
    assert status == 1 and "Traceback" not in errors, output + errors
    told = [line for line in errors.splitlines() if reason in line]
    assert len(told) == 1 and str(os.sep) in told[0], errors


def test_a_disk_that_is_full_from_some_change_on(toy, local):
    """Wherever that is, it is said, and with room again the same command goes on."""
    for number in range(1, 1000, 5):
        folder = toy.folder / f"full{number}"
        done = toy.run("--exp", folder.name, before=lambda: fail_from_change(folder, number, errno.ENOSPC))
        if done[0] == 0:
            break
        assert_explained(*done, "No space left on device")
        toy("--exp", folder.name)
        assert (folder / "results.txt").read_text(encoding="utf-8") == local, f"full from change {number} on"
    assert 20 < number < 1000


def test_a_disk_that_is_full_for_a_moment_of_several_stages_at_once(toy):
    """Records of stages, too, which are written in the process of the stage."""
    failed = 0
    for number in range(1, 60, 4):
        folder = toy.folder / f"full{number}"
        status, output, errors = toy.run("--exp", folder.name, "--jobs", "2", before=lambda: full_at_event(folder, number))
        failed += status
        if status:
            assert_explained(status, output, errors, "No space left on device")
    assert failed > 5


def test_a_folder_that_has_become_read_only(toy, local):
    toy("--stop-stage", "train")
    done = toy.run(before=lambda: fail_from_change(toy.exp, 1, errno.EROFS))
    assert_explained(*done, "Read-only file system")
    toy()
    assert toy.results() == local and toy.record("train")["attempts"] == 1


def as_job(toy):
    """The environment of a job of the toy's, as a driver submits it."""
    return {job.VARIABLE: job.job_variable("slurm", toy.exp)}


def test_a_file_that_another_machine_has_written_is_waited_for(toy, local, tmp_path):
    toy("--stop-stage", "prepare")
    manifest = toy.exp / "manifests" / "dev.txt"
    shutil.move(manifest, tmp_path / "dev.txt")
    timer = threading.Timer(1.0, shutil.move, [tmp_path / "dev.txt", manifest])
    timer.start()
    toy("--stage", "train", "--stop-stage", "train", **as_job(toy))
    timer.join()
    toy()
    assert toy.results() == local


def test_a_file_that_never_comes_is_named(toy, monkeypatch):
    for name, seconds in {"LATE": 0.2, "PAUSE": 0.05}.items():
        monkeypatch.setattr(job, name, seconds)  # the command is forked from this process
    toy("--stop-stage", "prepare")
    (toy.exp / "manifests" / "dev.txt").unlink()
    message = toy.error("--stage", "train", "--stop-stage", "train", **as_job(toy))
    assert "manifests/dev.txt" in message and "stage 0 prepare" in message


def test_a_clock_that_jumps(toy, local):
    """A day back or forth each time that it is read: what stages took is true, and none is done again for it."""

    def jump():
        usual, jumps = time.time, itertools.cycle([0.0, -86400.0, 86400.0, 0.0, 172800.0])
        time.time = lambda: usual() + next(jumps)

    toy(before=jump, TOY_SLEEP="0.05")
    for stage in ("prepare", "train", "score", "table"):
        assert 0 <= toy.record(stage)["seconds"] < 60
    assert toy.results() == local
    assert set(toy.plan().values()) == {"up to date"}


class Hungry:
    """A data set whose process the kernel kills at its second batch, while the file is there."""

    def __init__(self, mark):
        self.mark = mark

    def __getitem__(self, item):
        if item == 1 and self.mark.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return item


def test_a_killed_process_that_reads_data(tmp_path):
    mark = tmp_path / "mark"
    mark.touch()
    with one_line_error("process that reads data has ended.*out of memory.*num_workers"):
        list(BatchLoader(Hungry(mark), [0, 1, 2], seed=1, num_workers=1)(0))
    mark.unlink()
    assert [batch for _, batch in BatchLoader(Hungry(mark), [0, 1, 2], seed=1, num_workers=1)(0)] == [0, 1, 2]


def test_units_of_a_recording_that_is_gone(tmp_path):
    import numpy as np
    import soundfile
    from lhotse import Recording

    from pyspeech.data.cuts import read_samples

    soundfile.write(tmp_path / "gone.wav", np.zeros(800), 8000)
    cut = Recording.from_file(tmp_path / "gone.wav").to_cut()
    (tmp_path / "gone.wav").unlink()
    with one_line_error("gone: no such audio file: .*gone.wav; where the corpus was moved, prepare it again"):
        read_samples(cut, 8000)
