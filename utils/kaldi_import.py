#!/usr/bin/env python3
"""Check a Kaldi data directory, and make a lhotse manifest of cuts from it: one cut an utterance."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.kaldi_import import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
