"""Features computed from samples."""
