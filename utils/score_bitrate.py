#!/usr/bin/env python3
"""Score the bitrate of discovered units: (N / D) H, for N vectors in D seconds, H the entropy of distinct vectors in bits."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_bitrate")
