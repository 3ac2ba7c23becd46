"""Recipe engine behind pyspeech.engine.recipe: configuration, stages, records, locks and logs of an experiment folder."""
