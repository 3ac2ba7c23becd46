"""Streaming multilingual RNN transducers (Joshi et al. 2021): models, losses and search."""
