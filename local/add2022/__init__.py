"""Corpora of egs/add2022."""
