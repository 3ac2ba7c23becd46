#!/usr/bin/env python3
"""Stands in for qsub, qstat, qdel and qconf of Grid Engine, as their manual pages describe them, for the tests.

Linked under these names. Jobs run at once on this machine; the folder in FAKE_GRID_ENGINE holds a file for each that waits or
runs, and a mark for each that was deleted. A job that exits with 99 is run again, as by -r y.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ["FAKE_GRID_ENGINE"])
XML = """<?xml version='1.0'?><job_info><queue_info>{running}</queue_info><job_info>{waiting}</job_info></job_info>"""
ENTRY = "<job_list state='x'><JB_job_number>{number}</JB_job_number><JB_name>{name}</JB_name><state>{state}</state></job_list>"


def jobs():
    found = {}
    for path in sorted(HOME.glob("*.json")):
        if not deleted(path.stem).exists():
            found[path.stem] = read(path)
    return {number: job for number, job in found.items() if job}


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):  # over, or being written
        return {}


def deleted(number):
    return HOME / f"{number}.deleted"


def note(number, job):
    beside = HOME / f"{number}.new"
    beside.write_text(json.dumps(job))
    beside.rename(HOME / f"{number}.json")


def qsub(arguments):
    options = dict(zip(arguments, [*arguments[1:], ""], strict=False))  # each flag with what follows it
    number = str(len(list(HOME.glob("*.submitted"))) + 1)
    (HOME / f"{number}.submitted").write_text(shlex.join(arguments))
    (HOME / f"{number}.sh").write_text(sys.stdin.read())
    names = options.get("-hold_jid", "").split(",")
    held = [other for other, job in jobs().items() if other in names or job["name"] in names]
    job = {"name": options["-N"], "state": "hqw" if held else "qw"}
    note(number, job)
    if os.fork() == 0:
        os.setsid()
        for descriptor in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        while set(held) & set(jobs()):
            time.sleep(0.05)
        tasks = int(options.get("-t", "1-1").partition("-")[2])  # of an array, one after the other
        for task in range(1, tasks + 1):
            run(number, {**job, "last": task == tasks}, options["-o"], task)
        os._exit(0)
    print(number)


def run(number, job, path, task):
    environment = {**os.environ, "JOB_ID": number, "SGE_TASK_ID": str(task)}
    status = 99
    while status == 99 and number in jobs():  # qdel takes it out
        with open(path, "a") as output:
            process = subprocess.Popen(["bash", HOME / f"{number}.sh"], stdout=output, stderr=output, env=environment)
            note(number, {**job, "state": "r", "pid": process.pid})
            if deleted(number).exists():  # while it was being started
                process.kill()
            status = process.wait()
    if job["last"]:
        (HOME / f"{number}.json").unlink(missing_ok=True)


def qstat(arguments):
    entries = {number: ENTRY.format(number=number, **job) for number, job in jobs().items()}
    running = "".join(entry for entry in entries.values() if "<state>r<" in entry)
    print(XML.format(running=running, waiting="".join(entry for entry in entries.values() if entry not in running)))


def qdel(arguments):
    for number in arguments:  # all of them first: one may wait for another
        deleted(number).touch()
    for number in arguments:
        with contextlib.suppress(ProcessLookupError, KeyError):
            os.kill(read(HOME / f"{number}.json")["pid"], signal.SIGKILL)


def qconf(arguments):
    print("#name shortcut type relop requestable consumable default urgency\nh_vmem h_vmem MEMORY <= YES NO 0 0")


if __name__ == "__main__":
    globals()[Path(sys.argv[0]).name](sys.argv[1:])
