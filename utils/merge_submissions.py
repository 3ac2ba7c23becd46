#!/usr/bin/env python3
"""Make one ZeroSpeech 2020 submission of several that have a language each, such as those of two runs of egs/zerospeech."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("submission_merge")
