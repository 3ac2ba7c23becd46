#!/usr/bin/env python3
"""Tell genuine from fake speech, with the bundled detector or one that you trained."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("detect_fake")
