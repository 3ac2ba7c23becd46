#!/usr/bin/env python3
"""Write a Kaldi data directory of cut manifests, such as those of an experiment's corpus."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.kaldi_export import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
