"""The stages of speech activity detection (egs/fearless)."""
