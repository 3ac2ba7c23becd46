#!/usr/bin/env python3
"""Audio to discovered units with a VQ-VAE that egs/zerospeech/run.py trained."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("units")
