#!/usr/bin/env python3
"""Score speech activity detection: the official detection cost function (DCF) with precision, recall and F1."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.score_sad import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
