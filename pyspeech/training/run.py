"""A training from a model's making to its result, as all recipes set it up."""

from pyspeech.compat import default_device
from pyspeech.training.data import BatchLoader
from pyspeech.training.optimization import make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer


def train(make_model, dataset, sampler, compute_loss, config, folder, validate=None, log=None):
    """The trained model, a torch module, on the GPU where there is one; goes on from the newest checkpoint in `folder`.

    make_model: make_model() gives a new module; its random numbers follow from config.seed. dataset, sampler: as of
    BatchLoader; the others: as of Trainer.
    """
    seed_everything(config.seed)
    model = make_model().to(default_device())
    batches = BatchLoader(dataset, sampler, config.seed, config.num_workers)
    Trainer(model, make_optimizer(model, config), batches, compute_loss, config, folder, validate=validate, log=log).run()
    return model
