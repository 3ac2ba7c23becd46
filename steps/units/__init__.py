"""The stages of unit discovery (egs/zerospeech)."""
