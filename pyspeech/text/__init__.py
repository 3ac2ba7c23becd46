"""Text of transcripts: the normaliser, units of the models (graphemes, sentence pieces) and word error rates."""
