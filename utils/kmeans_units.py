#!/usr/bin/env python3
"""Discrete units by k-means from features in files, such as hidden layers of a self-supervised model."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../.."))
from pyspeech.launch import run_command

if __name__ == "__main__":
    run_command("kmeans")
