"""The figures of Heitkaemper et al. 2020 for one experiment: which data go into steps/sad_plots.py."""
from steps import sad_detect, sad_plots
from steps.sad_corpus import load_cuts

EXCERPT_SECONDS = 20.0


def draw_figures(folder, config, sweeps, scores):
    """Figures 2, 3 and 6 into `folder`/figures. config: StatisticalConfig; sweeps: as in sweeps.json; scores: of all systems."""
    from pyspeech.audio.io import read_audio
    from pyspeech.sad.statistical import detect

    figures = folder / "figures"
    cut = load_cuts(folder / "corpus", "dev")[0]
    samples, rate = read_audio(sad_detect.cut_path(cut), sad_detect.SAMPLING_RATE)
    start = _busiest(cut, EXCERPT_SECONDS)
    excerpt = samples[int(start * rate) : int((start + EXCERPT_SECONDS) * rate)]
    sad_plots.plot_denoising(*_spectrograms(excerpt, config), config.frame_shift, rate, figures / "denoising.png", start)
    found = detect(samples, rate, config)
    if found.noise is not None:
        sad_plots.plot_histogram(found, figures / "histogram.png")
    curves = {f"{system} + {smoothing}": (sweep["thresholds"], sweep["dcf"])
              for system, by_smoothing in sweeps.items() for smoothing, sweep in by_smoothing.items()}
    sad_plots.plot_thresholds(curves, figures / "thresholds.png",
                              {"statistical SAD": scores["statistical"]["dev"]["0"]["dcf"]})


def _spectrograms(samples, config):
    """Power spectra (T, F) of an excerpt, and after denoising, high-pass and linear prediction."""
    import numpy as np
    from pyspeech.sad.stat_energies import band_filters, denoise, power_spectra, predictor_gain

    filters = band_filters(config)
    power, muted = power_spectra(samples, np.hanning(config.n_fft + 1)[:-1].astype(np.float32), config)
    processed = denoise(power, muted, config)
    return power, processed * filters["passed"] * predictor_gain(processed, filters)[:, None]


def _busiest(cut, seconds):
    """Start of the stretch of `seconds` with the most speech, in seconds, on a grid of 1 s."""
    def speech(start):
        return sum(max(0.0, min(part.end, start + seconds) - max(part.start, start)) for part in cut.supervisions)

    return float(max(range(max(1, int(cut.duration - seconds))), key=speech))
