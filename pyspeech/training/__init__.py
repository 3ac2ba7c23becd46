"""Training with exact resume: a run killed at any moment and started again ends with the weights of an undisturbed run.

config.py        TrainConfig, the options of a recipe's `train:` section (imports nothing heavy)
data.py          BatchLoader: the batches of an epoch from any position on; the skipped ones cost no audio reading
randomness.py    streams of random numbers that follow from the seed and a position
optimization.py  AdamW and learning rate schedules
checkpoint.py    checkpoint files: atomic, the damaged one set aside, the mean of the n best
interruption.py  SIGTERM and SIGUSR2
progress.py      log lines, TensorBoard, tqdm
distributed.py   several processes: which this is, and what they agree on
step.py          one update of the weights, by any number of processes
trainer.py       the loop
run.py           all of these together: from a model's making to its result
"""
