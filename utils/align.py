#!/usr/bin/env python3
"""Find the times of the words and symbols of a given text in a recording (forced alignment)."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("align")
