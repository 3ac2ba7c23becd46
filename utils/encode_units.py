#!/usr/bin/env python3
"""Audio to discovered units with a VQ-VAE that egs/zerospeech/run.py trained."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.terminal import exit_after
from pyspeech.commands.units import main

if __name__ == "__main__":
    exit_after(main)
