#!/usr/bin/env python3
"""Write cut manifests, e.g. those of an experiment's corpus, as a Kaldi data directory."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("kaldi_export")
