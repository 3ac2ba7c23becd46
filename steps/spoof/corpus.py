"""The corpora of egs/add2022: manifests of genuine and fake utterances, and what training mixes with them.

corpus/{train,dev,adapt,eval}.jsonl.gz   Lhotse cuts, see pyspeech/spoof/formats.py; sets that a corpus lacks are missing
"""

from pathlib import Path

from pyspeech.errors import UserError
from steps.cuts import load_cuts

KINDS = ("auto", "add2022", "asvspoof2019")
TOGETHER = "+"  # between families of engines that are left out of one training


def prepare(exp, conf):
    """Corpus to Lhotse manifests: train, dev, adapt, eval; checks that the files alone give nothing away."""
    out, log = exp.dir / "corpus", exp.log
    if conf.corpus == "mini":
        from local.add2022 import mini as add_mini

        add_mini.prepare(out, log, scale=conf.scale, engines=conf.engines)
        return
    kind = kind_of(conf.corpus) if conf.kind == "auto" else conf.kind
    log.info("corpus=%s: the layout of %s", conf.corpus, kind)
    if kind == "asvspoof2019":
        from local.add2022 import asvspoof2019 as corpus
    else:
        from local.add2022 import add2022 as corpus
    counts = corpus.prepare(conf.corpus, out, log, skip_bad=conf.skip_bad)
    log.info(
        "%s",
        "; ".join(
            f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in count.items()) for name, count in counts.items()
        ),
    )


def kind_of(folder):
    """asvspoof2019 where its protocols are found from the folder, or a name in it says so, else add2022."""
    from local.add2022 import asvspoof2019

    folder = Path(folder).resolve()
    try:
        asvspoof2019.find_root(folder)
        return "asvspoof2019"
    except UserError:
        pass  # or the protocols are missing, which is said later
    names = [folder.name, *(path.name for path in [*folder.iterdir(), *filter(Path.is_dir, folder.glob("*/*"))])]
    return "asvspoof2019" if any("asvspoof2019_la" in name.lower() for name in names) else "add2022"


def choosing_cuts(corpus, name, without=None):
    """The cuts of a set whose label is known; [] where they are not of both kinds and so can choose nothing. without:
    families of engines whose fakes are left out, joined by TOGETHER."""
    cuts = left([cut for cut in load_cuts(corpus, name) if cut.supervisions[0].text], without)
    return cuts if {cut.supervisions[0].text for cut in cuts} == {"genuine", "fake"} else []


def scorable_cuts(corpus, name):
    """The cuts of `choosing_cuts` for a tool that --corpus names the corpus of; UserError where there are none."""
    path = Path(corpus) / f"{name}.jsonl.gz"
    if not path.is_file():
        raise UserError(f"--corpus {corpus}: no {path.name} in it; expected that of an experiment, EXP/corpus")
    try:
        cuts = choosing_cuts(corpus, name)
    except (ValueError, KeyError, EOFError) as error:
        raise UserError(f"{path}: no manifest of cuts ({error}); run the stage prepare again") from error
    if not cuts:
        raise UserError(f"{path}: expected labelled utterances, genuine and fake")
    return cuts


def training_cuts(corpus, sets, without=None):
    """The cuts of some sets, to train with, but for the fakes of some families of engines. UserError where labels are
    missing."""
    cuts = [cut for name in sets for cut in load_cuts(corpus, name)]
    unlabelled = [cut.id for cut in cuts if not cut.supervisions[0].text]
    if unlabelled:
        raise UserError(
            f"{len(unlabelled)} training utterances have no label, {unlabelled[0]} for one; give their label "
            "file its place in the corpus"
        )
    return left(cuts, without)


def left(cuts, without):
    """Those of labelled cuts that are no fakes of some families of engines; all of them where it is None."""
    from pyspeech.spoof.formats import family_of

    return [cut for cut in cuts if without is None or family_of(cut) not in without.split(TOGETHER)]
