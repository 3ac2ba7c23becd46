#!/usr/bin/env python3
"""Check a Kaldi data directory, and make a lhotse manifest of cuts from it: one cut an utterance."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("kaldi_import")
