#!/usr/bin/env python3
"""Write the report page of an experiment: results, examples to look at and listen to, training curves, what ran."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("report")
