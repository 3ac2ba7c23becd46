#!/usr/bin/env python3
"""Speak recordings in another voice through discovered units, with trained models."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("speak")
