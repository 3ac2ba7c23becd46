"""Corpora: from what is distributed to Lhotse manifests, one module each."""
