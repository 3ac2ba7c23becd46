"""Corpora of egs/indic."""
