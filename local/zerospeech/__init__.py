"""Corpora of egs/zerospeech."""
