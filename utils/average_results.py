#!/usr/bin/env python3
"""Average the figures of several runs of a recipe, e.g. of several random seeds: mean and standard deviation."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("average_results")
