#!/usr/bin/env python3
"""Score discrete units against phones: phone purity, cluster purity and PNMI, and the table of units against phones."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_units")
