#!/usr/bin/env python3
"""The detector of fake audio whose weights are the mean of those of several, with calibration and threshold of its own."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("average_detectors")
