"""Training of one SAD network (Heitkaemper et al. 2020, sections 3 and 4.2); the DCF on dev chooses the weights."""
from dataclasses import replace

from steps.sad.corpus import load_cuts
from steps.sad.detect import SAMPLING_RATE, cut_path, sweep_scores


def train_network(exp, conf, system):
    """Train `system` (cnn, rnn or seg_rnn) in training/<system>, where model.pt is the result. Goes on after a kill."""
    from pyspeech.compat import default_device
    from pyspeech.sad.dataset import CropDataset, crop_sampler
    from pyspeech.sad.decoding import save_model
    from pyspeech.sad.networks import SadNetwork
    from pyspeech.sad.training import compute_loss
    from pyspeech.training.data import BatchLoader
    from pyspeech.training.optimization import make_optimizer
    from pyspeech.training.randomness import seed_everything
    from pyspeech.training.trainer import Trainer

    corpus, folder = exp.dir / "corpus", exp.dir / "training" / system
    streams = load_cuts(corpus, "train")
    seed_everything(conf.train.seed)
    model = SadNetwork(replace(conf.network, temporal=system), conf.features)
    model.to(default_device())
    dataset = CropDataset(streams, conf.data, conf.features, model.context)
    batches = BatchLoader(dataset, crop_sampler(streams, conf.data, conf.train.seed), conf.train.seed,
                          conf.train.num_workers)
    Trainer(model, make_optimizer(model, conf.train), batches, compute_loss, conf.train, folder,
            validate=dev_validation(corpus, "median" if system != "seg_rnn" else "none"), log=exp.log).run()
    save_model(folder, model)


def dev_validation(corpus, smoothing):
    """validate(model) -> {"dcf": the lowest on dev over the thresholds, a fraction}; dev audio stays in memory."""
    from pyspeech.audio.io import read_audio
    from pyspeech.sad.decoding import score_samples

    cuts = load_cuts(corpus, "dev")
    audio = [read_audio(cut_path(cut), SAMPLING_RATE)[0] for cut in cuts]

    def validate(model):
        scores = [score_samples(model, samples) for samples in audio]
        return {"dcf": sweep_scores(scores, cuts, corpus / "reference" / "dev", smoothing,
                                    model.stft.config.frame_shift).best_dcf}

    return validate
