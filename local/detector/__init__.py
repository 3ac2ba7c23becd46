"""Corpus of egs/detector."""
