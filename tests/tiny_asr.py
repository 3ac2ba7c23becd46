"""Sizes of a small transducer, and vocabularies of three languages, for tests of what does not depend on them."""

SMALL = {
    "encoder_layers": 2,
    "encoder_size": 24,
    "predictor_size": 20,
    "embedding": 12,
    "joint": 28,
    "features": 16,
    "lid_sizes": [10, 6],
}
VOCABULARIES = {"en-IN": 7, "hi-IN": 5, "ta-IN": 9}
UNION = 19  # symbols of all of them
