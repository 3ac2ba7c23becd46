#!/usr/bin/env python3
"""Write a Kaldi data directory of cut manifests, such as those of an experiment's corpus."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("kaldi_export")
