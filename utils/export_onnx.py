#!/usr/bin/env python3
"""Write a trained detector of speech or of fake audio as one ONNX file, with its options and threshold."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.export_onnx import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
