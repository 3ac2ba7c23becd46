#!/usr/bin/env python3
"""Check a Kaldi data directory and write it as a lhotse manifest: one cut per utterance."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("kaldi_import")
