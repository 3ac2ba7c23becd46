"""Fake audio detection: augmentation by speaker anonymisation, the LCNN-BLSTM, scoring."""
