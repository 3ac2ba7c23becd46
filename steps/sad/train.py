"""Training of one SAD network (Heitkaemper et al. 2020, sections 3 and 4.2); the DCF on dev chooses the weights."""
from dataclasses import replace

from steps.cuts import load_cuts
from steps.sad.detect import SAMPLING_RATE, cut_path, sweep_scores


def train_network(exp, conf, system):
    """Train `system` (cnn, rnn or seg_rnn) in training/<system>, where model.pt is the result. Goes on after a kill."""
    from pyspeech.sad.checkpoint import save_model
    from pyspeech.sad.dataset import CropDataset, crop_sampler
    from pyspeech.sad.networks import SadNetwork, context_frames
    from pyspeech.sad.training import compute_loss
    from pyspeech.training.run import train

    corpus, folder = exp.dir / "corpus", exp.dir / "training" / system
    streams, network = load_cuts(corpus, "train"), replace(conf.network, temporal=system)
    dataset = CropDataset(streams, conf.data, conf.features, context_frames(network, conf.features))
    sampler = crop_sampler(streams, conf.data, conf.train.seed)
    validate = dev_validation(corpus, "median" if system != "seg_rnn" else "none")
    model = train(lambda: SadNetwork(network, conf.features), dataset, sampler, compute_loss, conf.train, folder, validate,
                  exp.log)
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
