"""What stands behind pyspeech.pipeline: configuration, stages, records, locks and logs of an experiment folder."""
