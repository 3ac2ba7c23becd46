#!/usr/bin/env python3
"""Score a detector of fake audio: equal error rate (EER) with 95 % interval, Cllr and min t-DCF, by attack and condition."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_eer")
