#!/usr/bin/env python3
"""Transcribe speech with a trained transducer."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("transcribe")
