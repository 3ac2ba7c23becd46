#!/usr/bin/env python3
"""Average the weights of detectors of fake speech; calibrate the mean and set its threshold."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("average_detectors")
