#!/usr/bin/env python3
"""Score transcripts: word error rate (WER) by language and overall, with 95 % confidence intervals."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.score_wer import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
