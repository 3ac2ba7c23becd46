#!/usr/bin/env python3
"""Score a detector of fake audio: equal error rate (EER) with its 95 % interval, Cllr, min t-DCF, by attack and"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.score_eer import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
