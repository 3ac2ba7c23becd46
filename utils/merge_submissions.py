#!/usr/bin/env python3
"""Merge ZeroSpeech 2020 submissions of one language each, e.g. of two runs of a recipe."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("submission_merge")
