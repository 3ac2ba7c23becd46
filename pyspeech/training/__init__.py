"""Training with exact resume."""
