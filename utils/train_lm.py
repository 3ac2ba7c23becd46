#!/usr/bin/env python3
"""Estimate an n-gram language model over the symbols of a transducer, for utils/transcribe.py --lm."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("train_lm")
