#!/usr/bin/env python3
"""Score speech activity detection: the official detection cost function (DCF) with precision, recall and F1."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("report")
