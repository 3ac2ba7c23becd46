#!/usr/bin/env python3
"""Write a SAD network that egs/fearless/run.py trained as one ONNX file, which carries its options, threshold and smoothing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.export_onnx import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
