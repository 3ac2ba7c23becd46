#!/usr/bin/env python3
"""Tell genuine from fake speech in audio files, with the detector that comes along or one that egs/add2022/run.py trained."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("detect_fake")
