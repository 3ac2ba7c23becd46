"""Kaldi data directories: the rules they keep, reading, writing; matrices in archives are in pyspeech/features."""
