#!/usr/bin/env python3
"""Score transcripts: word error rate (WER) by language and overall, with 95 % confidence intervals."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_wer")
