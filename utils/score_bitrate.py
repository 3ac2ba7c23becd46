#!/usr/bin/env python3
"""Bitrate of discovered units: (N / D) H, of N vectors in D seconds, H the entropy of the distinct vectors in bits."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.score_bitrate import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
