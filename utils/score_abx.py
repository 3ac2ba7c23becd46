#!/usr/bin/env python3
"""Score features by ABX: how often a phone is nearer to another phone than to itself, within and across speakers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.score_abx import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
