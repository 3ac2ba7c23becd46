#!/usr/bin/env python3
"""Score features by ABX error: how often a phone token is nearer to another phone, within and across speakers."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("score_abx")
