"""The corpora of egs/indic: manifests, output symbols, statistics of the features.

    corpus/{train,dev,test}.jsonl.gz   Lhotse cuts, one an utterance; supervision.language is a code such as hi-IN
    units/<code>.json, units/union.json
    features/stats.json, features/frames, features/options.json
"""
from dataclasses import asdict
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import write_json
from steps.cuts import load_cuts as load_set

KINDS = ("mucs", "fleurs", "commonvoice", "cmu_indic")  # layouts of a corpus
SETS = ("train", "dev", "test")
STORED_BYTES = 4 << 30  # 37 hours of log-mel frames; those of what comes later are computed in every training


def prepare_corpus(conf, out, log):
    """Write the manifests of the corpus that `conf` names into the folder `out`."""
    if conf.corpus == "mini":
        from local import indic_mini
        indic_mini.prepare(out, log, scale=conf.scale, languages=conf.languages)
    elif conf.corpus == "prompts":
        from local import prompts_mini
        prompts_mini.prepare(out, log, scale=conf.scale, languages=conf.languages)
    elif conf.kind == "mucs":
        from local import mucs
        mucs.prepare(conf.corpus, out, log, languages=conf.languages, skip_bad=conf.skip_bad)
    else:
        from local import speech_corpora
        speech_corpora.prepare(conf.kind, conf.corpus, out, log, languages=conf.languages, skip_bad=conf.skip_bad)
    counts = describe_corpus(out)
    for language, by_set in counts.items():
        log.info("%s: %s", language, ", ".join(f"{name} {by_set[name]['utterances']} utterances, "
                                               f"{by_set[name]['minutes']:.1f} min" for name in by_set))


def load_cuts(corpus, name, language=None):
    """The cuts of a set as a list, of one language where one is given; empty where there is none."""
    return [cut for cut in load_set(corpus, name) if language in (None, cut.supervisions[0].language)]


def languages_of(corpus):
    """Codes of the languages with training data, sorted: all, as a corpus is prepared with those wanted alone."""
    found = sorted({cut.supervisions[0].language for cut in load_cuts(corpus, "train")})
    if not found:
        raise UserError(f"{corpus}: no training utterance in any language")
    return found


def describe_corpus(corpus):
    """{language: {set: {"utterances", "minutes", "words"}}}"""
    described = {}
    for name in SETS:
        for cut in load_cuts(corpus, name):
            supervision = cut.supervisions[0]
            entry = described.setdefault(supervision.language, {}).setdefault(
                name, {"utterances": 0, "minutes": 0.0, "words": 0})
            entry["utterances"] += 1
            entry["minutes"] += cut.duration / 60
            entry["words"] += len(supervision.text.split())
    return {language: described[language] for language in sorted(described)}


def make_units(conf, corpus, folder, log):
    """Units of every language from its training text, and their union for the systems with one output layer."""
    from pyspeech.text.normalize import normalize
    from pyspeech.text.units import GraphemeUnits, SentencePieceUnits, save_units

    made = {}
    for language in languages_of(corpus):
        texts = [normalize(cut.supervisions[0].text, language) for cut in load_cuts(corpus, "train", language)]
        made[language] = (GraphemeUnits.build(texts, language=language) if conf.units == "grapheme"
                          else SentencePieceUnits.train(texts, conf.pieces, language=language))
        log.info("%s: %d symbols", language, made[language].size)
        save_units(folder / f"{language}.json", made[language])
    union = type(made[language]).union(made)
    log.info("union: %d symbols", union.size)
    save_units(folder / "union.json", union)


def load_units(folder, languages, union=False):
    """{language: units} of a stage `units`; with `union`, the same for all of them."""
    from pyspeech.text.units import load_units as load

    return {language: load(Path(folder) / f"{'union' if union else language}.json") for language in languages}


def compute_features(conf, corpus, out, log):
    """Log-mel frames of train and dev for all trainings: out/frames, and out/stats.json, the mean and standard deviation
    of the training features, all languages together. Of a large corpus the first STORED_BYTES are stored.

    out/options.json are the options of the features: what is trained on them is out of date when one of them changes,
    be it one (such as stack_shift) that frames and statistics do not show.
    """
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.features.frame_store import FrameStore, write_store
    from pyspeech.transducer.dataset import FrameReader, compute_frames

    languages = languages_of(corpus)
    cuts = training_cuts(conf, corpus, languages) + cuts_of(corpus, "dev", languages)
    count = write_store(out / "frames", compute_frames(cuts, conf.features, jobs=2), conf.features.num_bins, STORED_BYTES)
    log.info("frames of %d of %d utterances stored", count, len(cuts))
    read = FrameReader(conf.features, stored=FrameStore(out / "frames"))
    GlobalStats.compute(map(read, cuts_of(corpus, "train", languages))).save(out / "stats.json")
    write_json(out / "options.json", asdict(conf.features))


def cuts_of(corpus, name, languages):
    """The cuts of a set in these languages, as a list."""
    wanted = set(languages)
    return [cut for cut in load_cuts(corpus, name) if cut.supervisions[0].language in wanted]


def training_cuts(conf, corpus, languages):
    """The training cuts of these languages, with their copies at other speeds, as a list."""
    from pyspeech.transducer.dataset import perturb_speed

    cuts = cuts_of(corpus, "train", languages)
    return list(perturb_speed(cuts, conf.data.speeds)) if conf.data.speeds else cuts
