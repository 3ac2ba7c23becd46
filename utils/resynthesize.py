#!/usr/bin/env python3
"""Speech in another voice, by way of discovered units, with what egs/zerospeech/run.py trained."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("speak")
