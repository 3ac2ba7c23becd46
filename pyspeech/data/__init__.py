"""Utterances, cuts and what is kept in memory of them."""
