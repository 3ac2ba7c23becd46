#!/usr/bin/env python3
"""Score a detector of fake audio: EER with 95 % interval, DCF, Cllr and min t-DCF, by subset, attack, family and condition."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_eer")
