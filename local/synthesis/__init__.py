"""Engines that speak, vocode or simulate, for the mini corpora."""
