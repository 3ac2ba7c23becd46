"""Corpora of egs/fearless."""
