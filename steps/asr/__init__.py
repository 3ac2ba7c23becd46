"""The stages of multilingual recognition (egs/indic)."""
