#!/usr/bin/env python3
"""Check a ZeroSpeech 2020 submission (track 2019: units and resynthesis) before sending it."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("submission_validate")
