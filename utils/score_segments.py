#!/usr/bin/env python3
"""Score a detector of fake audio on partially fake recordings: equal error rate over segments (PartialSpoof)."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_segments")
