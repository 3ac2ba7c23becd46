#!/usr/bin/env python3
"""Export a trained model as ONNX: a detector for these tools, or a transducer for sherpa-onnx."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("export_onnx")
