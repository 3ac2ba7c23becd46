"""The corpora of egs/add2022: manifests of genuine and fake utterances, and what training mixes with them.

corpus/{train,dev,adapt,eval}.jsonl.gz   Lhotse cuts, see pyspeech/spoof/formats.py; sets that a corpus lacks are missing
"""

from pathlib import Path

from pyspeech.data.manifests import load_cuts
from pyspeech.errors import UserError
from pyspeech.spoof.scored_cuts import left

KINDS = ("auto", "add2022", "asvspoof2019", "labelled")  # layouts
WAYS = ("auto", "page", "speaker", "family", "utterance")  # of local/add2022/draw_sets.py


def prepare(exp, conf):
    """Corpus to Lhotse manifests: train, dev, adapt, eval; checks that the files alone give nothing away."""
    out, log = exp.dir / "corpus", exp.log
    if conf.corpus == "mini":
        from local.add2022 import mini

        mini.prepare(out, log, scale=conf.scale, engines=conf.engines, parts=exp.parts)
        return
    kind = kind_of(conf.corpus) if conf.kind == "auto" else conf.kind
    log.info("corpus=%s: the layout of %s", conf.corpus, kind)
    options = {"skip_bad": conf.skip_bad, "parts": exp.parts}
    if kind == "labelled":
        from local.add2022 import labelled as corpus

        options["split_by"] = conf.split_by
    elif kind == "asvspoof2019":
        from local.add2022 import asvspoof2019 as corpus
    else:
        from local.add2022 import add2022 as corpus
    counts = corpus.prepare(conf.corpus, out, log, **options)
    log.info(
        "%s",
        "; ".join(
            f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in count.items()) for name, count in counts.items()
        ),
    )


def kind_of(corpus):
    """The layout of a corpus, one of KINDS: asvspoof2019 where its protocols are found from the folder, or a name in it says
    so; labelled for a list, a folder with lists, or folders named after labels; else add2022."""
    from local.add2022 import add2022, asvspoof2019, labelled

    folder = Path(corpus).resolve()
    if folder.is_file():
        return "labelled"
    try:
        asvspoof2019.find_root(folder)
        return "asvspoof2019"
    except UserError:
        pass  # or the protocols are missing, which is said later
    names = [folder.name, *(path.name for path in [*folder.iterdir(), *filter(Path.is_dir, folder.glob("*/*"))])]
    if any("asvspoof2019_la" in name.lower() for name in names):
        return "asvspoof2019"
    if labelled.find_lists(folder) or labelled.has_folders(folder) and not any(add2022.find_files(folder)[1].values()):
        return "labelled"
    return "add2022"


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
