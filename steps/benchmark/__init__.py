"""Benchmarks of whole recipes: the parts of each, the trainings that its stages set up, tables and plots."""
