"""What a process knows of itself."""

import os

import pytest

from pyspeech.engine.process import num_cores


@pytest.mark.parametrize("variable", ["SLURM_CPUS_PER_TASK", "NSLOTS"])
@pytest.mark.parametrize("asked, expected", [("1", 1), ("100000", None), ("", None), ("none", None)])
def test_no_more_cores_than_the_job_asked_for(monkeypatch, variable, asked, expected):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delenv("NSLOTS", raising=False)
    monkeypatch.setenv(variable, asked)
    assert num_cores() == (expected or len(os.sched_getaffinity(0)))
