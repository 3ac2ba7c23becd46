"""Stages as jobs of a Slurm of the tests' own: the same results as of a local run, whatever ends the jobs or the driver."""

import json
import os
import signal

import pytest
from toy_harness import Toy, wait_until

from pyspeech.engine.queues import Job
from pyspeech.engine.site import Site
from pyspeech.errors import UserError
from steps.benchmark import one_job
from steps.benchmark.one_job import run_one_job


@pytest.fixture
def toy(slurm, tmp_path, monkeypatch):
    """The toy recipe, whose jobs go to the private Slurm; jobs that a failed test left are ended."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    toy = Toy(tmp_path / "töy folder")
    yield toy
    toy.run("--cancel")


@pytest.fixture(scope="module", autouse=True)
def lost(slurm, tmp_path_factory):
    """(toy, its driver) of a training whose node was lost, at the start: Slurm takes its time to notice."""
    toy = Toy(tmp_path_factory.mktemp("lost") / "toy")
    driver = drive(toy, **toy.hold(1))
    wait_until(lambda: history(toy) == 1)
    node = slurm.jobs(toy.exp)["train"][2]
    slurm.call("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")  # other tests get other nodes
    slurm.lose_node(node)
    yield toy, driver
    driver.kill()
    slurm.start_node(node)  # ends what it had started
    toy.run("--cancel")


@pytest.fixture
def local(tmp_path):
    """What an undisturbed run on this machine gives, by steps of training."""

    def results(*arguments):
        other = Toy(tmp_path / "local")
        other(*arguments)
        return other.results()

    return results


def history(toy):
    """Steps of training so far."""
    path = toy.exp / "model" / "history.txt"
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0


def attempts(toy):
    """The number of the attempt at the training that goes on."""
    try:
        return json.loads((toy.exp / "stages" / "train.attempt.json").read_text(encoding="utf-8"))["attempts"]
    except (OSError, ValueError):
        return 0


def drive(toy, *arguments, **environment):
    return toy.start("--cluster", "slurm", *arguments, **environment)


def finish(process, status=0):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == status, output + errors
    return output, errors


def test_jobs_give_what_a_local_run_gives(toy, local, slurm):
    (toy.folder / "conf" / "cluster.yaml").write_text("setup: ['export TOY_SLEEP=0.05', 'echo $SLURM_JOB_NAME']\n")
    output, _ = toy("--cluster", "slurm", "cluster.memory.train=0.5", "cluster.time_factor=0.5", "train.workers=1")
    assert toy.results() == local()
    assert "[train] step 3" in output
    assert "profiles: mini, quick\n" in toy("--help")[0] + "\n"  # cluster.yaml is none
    printed = (toy.exp / "logs" / "1-train.job").read_text(encoding="utf-8")
    assert printed.startswith("pyspeech-") and printed.splitlines()[0].endswith("-train")  # setup has run
    number = output.split("stage 1 train: job ")[1].split()[0]
    told = slurm.call("scontrol", "show", "job", number)
    assert "TimeLimit=06:00:00" in told and "MinMemoryNode=512M" in told and "Requeue=1" in told
    assert set(toy.plan("--cluster", "slurm", "train.workers=1").values()) == {"up to date"}
    assert "job" not in toy("--cluster", "slurm", "train.workers=1")[0]
    assert not (toy.exp / ".cluster").exists()
    assert toy.ran("collar=1").keys() == {"score", "table"}  # and here again


def test_a_job_computes_with_as_many_threads_as_a_local_run(toy, tmp_path, monkeypatch):
    """Whatever cpus the stage declares (two), and however many stages run at once; OMP_NUM_THREADS goes to the job too."""
    stop, job, found = ("--stop-stage", "prepare"), ("--cluster", "slurm"), {}
    for asked in (None, "3"):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False) if asked is None else monkeypatch.setenv("OMP_NUM_THREADS", asked)
        for name, arguments in {"one": ("--jobs", "1"), "two": ("--jobs", "2"), "job": job}.items():
            toy(*stop, "--force", *arguments)
            found[name, asked] = toy.record("prepare")["threads"]
            log = (toy.exp / "logs" / "0-prepare.log").read_text(encoding="utf-8")
            assert log.count("threads") and toy.plan(*stop) == {"prepare": "up to date"}
    assert found == {(name, asked): int(asked or 1) for name in ("one", "two", "job") for asked in (None, "3")}


def test_the_driver_is_dispensable(toy, local, slurm):
    """Killed twice, the jobs go on; while they do, others are refused, and the same command follows them to the end."""
    driver = drive(toy, **toy.hold(1))
    wait_until(lambda: history(toy) == 1)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert "are in the queue of slurm (score, table, train)" in toy.error()
    assert "submitted with other options" in toy.error("--cluster", "slurm", "train.steps=7")
    driver = drive(toy)
    assert any("stage 1 train: is job" in line for line in iter(driver.stdout.readline, ""))
    assert "is in use by process" in toy.error("--cluster", "slurm")
    driver.send_signal(signal.SIGINT)
    assert "the jobs go on" in finish(driver, 130)[1]
    assert set(slurm.jobs(toy.exp)) == {"train", "score", "table"}
    driver = drive(toy)
    assert any("stage 3 table: is job" in line for line in iter(driver.stdout.readline, ""))
    toy.hold(3)
    assert ": job" not in finish(driver)[0]  # none was submitted
    assert toy.results() == local()


def test_cancelled_jobs_are_gone_and_the_same_command_goes_on(toy, local, slurm):
    assert "no jobs of this folder are known" in toy("--cancel")[0]
    driver = drive(toy, **toy.hold(1))
    wait_until(lambda: history(toy) == 1)
    assert "3 jobs cancelled" in toy("--cancel")[0]
    assert slurm.jobs(toy.exp) == {}
    assert "have been cancelled" in finish(driver, 1)[1]
    assert history(toy) == 1
    toy("--cluster", "slurm")
    assert toy.results() == local() and toy.record("train")["attempts"] == 2


def test_a_failure_is_explained_and_what_needs_it_cancelled(toy, local, slurm):
    output, errors = toy("--cluster", "slurm", TOY_FAIL="raise UserError('no such collar')", status=1)
    assert "ERROR [score] stage 2 score failed: no such collar" in errors
    assert "FAILED with status 1 on n" in errors and "stage 3 table: not run, it needs stage 2 score" in errors
    assert "go on, once that is mended, with:" in errors.splitlines()[-1] and "--cluster slurm" in errors.splitlines()[-1]
    assert slurm.jobs(toy.exp) == {}
    toy("--cluster", "slurm")
    assert toy.results() == local()


def test_preempted_killed_and_out_of_time(toy, local, slurm):
    """Each ends the job of the training in the middle of it; it goes on in the same step."""
    driver = drive(toy, **toy.hold(1))
    wait_until(lambda: history(toy) == 1)
    slurm.call("scancel", "--batch", "--signal=USR2", slurm.jobs(toy.exp)["train"][0])  # as Slurm does before the time is up
    wait_until(lambda: attempts(toy) == 2)
    toy.hold(2)
    wait_until(lambda: history(toy) == 2)
    slurm.call("scontrol", "requeue", slurm.jobs(toy.exp)["train"][0])  # as at a preemption: SIGTERM, and queued again
    wait_until(lambda: attempts(toy) == 3)
    toy.hold(3)
    finish(driver)
    assert "queued again, to go on where it stopped" in (toy.exp / "logs" / "1-train.job").read_text(encoding="utf-8")
    assert toy.results() == local() and toy.record("train")["attempts"] == 3


def test_time_that_is_never_enough(toy, slurm):
    """A stage that comes no further is given up, with what to change; and one that cannot go on at once."""
    toy("--stop-stage", "prepare")
    driver = drive(toy, **toy.hold(0))
    for attempt in (1, 2, 3):
        # Not before the stage has made its folder: what one attempt has and the one before has not is progress.
        wait_until(lambda: attempts(toy) == attempt and (toy.exp / "model").is_dir())
        slurm.call("scancel", "--batch", "--signal=USR2", slurm.jobs(toy.exp)["train"][0])
    errors = finish(driver, 1)[1]
    assert "3 attempts have come no further; give it more with cluster.hours.train=HOURS" in errors


def test_a_lost_node(lost, local):
    """Slurm starts the job again elsewhere while the lost node's process goes on: the second waits, and finds it done."""
    toy, driver = lost
    wait_until(lambda: ": waiting" in (toy.exp / "logs" / "1-train.job").read_text(encoding="utf-8"), 120)  # the second
    toy.hold(3)
    finish(driver)
    assert toy.results() == local()
    assert toy.record("train")["attempts"] == 1  # by the first


def test_too_little_memory(toy, slurm):
    errors = toy(
        "--cluster", "slurm", "cluster.memory.score=0.05", status=1,
        TOY_FAIL="import time; hog = b'x' * (200 << 20); time.sleep(30)",
    )[1]  # fmt: skip
    assert "stage 2 score failed: job" in errors and "it had 0.05 GB, give it more with cluster.memory.score=GB" in errors


def test_a_job_that_is_no_stage(slurm, tmp_path, capsys, monkeypatch):
    """It is followed to its end, and how that was is said; where one of its name is in the queue, that one is followed."""
    job, go_on = Job("pyspeech-test-one", "", str(tmp_path / "printed"), memory=0.5), tmp_path / "go on"
    script = f"until [ -e '{go_on}' ]; do sleep 0.1; done; echo first"
    monkeypatch.setenv("LOGNAME", "nobody")  # as sudo may leave it
    slurm.call("sbatch", "--job-name=pyspeech-test-one", "--mem=100", f"--output={job.output}", "--wrap", script)
    usual = one_job.say
    monkeypatch.setattr(one_job, "say", lambda line, *stream: (usual(line, *stream), go_on.touch()))
    run_one_job("slurm", Site(), job, ["echo", "second"])
    output = capsys.readouterr().out
    assert output.startswith("is job ") and "first" in output and "second" not in output
    run_one_job("slurm", Site(), job, ["bash", "-c", "echo second; exit 3"])
    printed = capsys.readouterr()
    assert "second" in printed.out and "first" not in printed.out and "FAILED with status 3" in printed.err
    with pytest.raises(UserError, match="slurm refused the job: .*partition"):
        run_one_job("slurm", Site(partition="nowhere"), job, ["echo"])


def test_options_of_the_site(toy):
    assert "option cluster.hours.trian: no stage 'trian'; did you mean 'train'?" in toy.error(
        "--cluster", "slurm", "cluster.hours.trian=2"
    )
    assert "cluster.shards.train: stage train does not split" in toy.error("--cluster", "slurm", "cluster.shards.train=2")
    assert "no option 'partitoin'" in toy.error("--cluster", "slurm", "cluster.partitoin=x")
    assert "expected one of slurm, sge" in toy.error("--cluster", "pbs")
    assert "an option of --cluster" in toy.error("cluster.partition=x")
    assert "refused the job" in toy.error("--cluster", "slurm", "cluster.partition=nowhere")


# Grid Engine, whose daemons would listen on all interfaces, is stood in for.


@pytest.fixture
def grid(grid_engine, tmp_path):
    """The toy recipe beside a stand-in for Grid Engine; submitted(): the arguments of each qsub."""
    toy = Toy(tmp_path / "toy")
    toy.submitted = grid_engine
    return toy


def test_grid_engine(grid, local):
    home = grid.folder.parent / "home" / "pyspeech"
    home.mkdir(parents=True)
    (home / "cluster.yaml").write_text("partition: all.q\naccount: speech\n")
    grid("--cluster", "sge", "cluster.partition=long.q")
    assert grid.results() == local()
    prepare, train, *_ = grid.submitted()
    assert "-pe smp 2" in prepare and "h_rt=3600,h_vmem=2048M" in prepare and "-q long.q -P speech" in prepare
    assert (
        "h_rt=43200,h_vmem=4096M" in train and "train,1 " in train + " " and "gpu" not in train
    )  # holds on its name and on job 1


def test_grid_engine_requeues_and_cancels(grid, local):
    driver = grid.start("--cluster", "sge", **grid.hold(1))
    wait_until(lambda: history(grid) == 1)
    running = json.loads((grid.folder.parent / "state" / "2.json").read_text())
    os.kill(running["pid"], signal.SIGUSR2)  # -notify, before the time is up
    wait_until(lambda: attempts(grid) == 2)
    grid.hold(3)
    finish(driver)
    assert grid.results() == local() and grid.record("train")["attempts"] == 2
    driver = grid.start("--cluster", "sge", "train.steps=5", **grid.hold(1))
    wait_until(lambda: history(grid) == 1)
    assert "3 jobs cancelled" in grid("--cancel")[0]
    assert "have been cancelled" in finish(driver, 1)[1]
