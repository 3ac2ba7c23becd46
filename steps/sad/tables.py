"""The tables of Heitkaemper et al. 2020: ours, with the paper's figures beside."""
from steps.tables import decimals, markdown_table, percent, report_text

SYSTEMS = {
    "statistical": "Stat. SAD",
    "cnn": "CNN + HMM",
    "rnn": "RNN + HMM",
    "seg_rnn": "Seg. RNN",
    "threshold": "Stat. SAD, threshold of 2.1 alone",
    "webrtc": "WebRTC, best mode on dev",
}
# Table 2 of the paper, in %: F1, P, R and DCF on dev; DCF on eval. The text gives 0.51 for the Seg. RNN's dev DCF.
PAPER_TABLE_2 = {
    "statistical": (94.32, 90.94, 97.97, 2.98, 4.60),
    "cnn": (97.91, 96.83, 99.02, 1.42, 2.45),
    "rnn": (97.84, 96.85, 98.85, 1.54, 2.17),
    "seg_rnn": (98.62, 97.42, 99.85, 0.81, 1.19),
    "baseline": (None, None, None, 12.50, 13.60),
}
PAPER_TABLE_3 = {"statistical": 0.00472, "cnn": 0.0119, "seg_rnn": 0.0445}


def table_2(results, sets, collar):
    """Table 2: F1, P, R and DCF on dev, DCF on the other sets (the paper's eval beside ours), in %."""
    others = [name for name in sets if name != "dev"]
    header = ["System", "dev F1", "dev P", "dev R", "dev DCF"] + [f"{name} DCF" for name in others]
    header += ["paper: dev F1", "P", "R", "DCF", "eval DCF"]
    rows = []
    for system, label in SYSTEMS.items():
        if system in results:
            rows.append([label] + _our_cells(results[system], others, f"{collar:g}") + _paper_cells(system))
    rows.append(["Baseline"] + [None] * (4 + len(others)) + _paper_cells("baseline"))
    return markdown_table(header, rows)


def _our_cells(by_set, others, collar):
    dev = by_set.get("dev", {}).get(collar, {})
    cells = [percent(dev.get(name)) for name in ("f1", "precision", "recall", "dcf")]
    return cells + [percent(by_set.get(name, {}).get(collar, {}).get("dcf")) for name in others]


def _paper_cells(system):
    return list(map(decimals, PAPER_TABLE_2.get(system, (None,) * 5)))


def table_3(speed):
    """Table 3: fraction of real time on one thread. `speed`: {system: fraction}."""
    rows = [[SYSTEMS[system], f"{speed[system]:.5f}", PAPER_TABLE_3.get(system)] for system in SYSTEMS if system in speed]
    return markdown_table(["System", "ours", "paper"], rows)


def errors_table(results, sets, collar):
    """Missed speech and false speech of every system on every set, in %: where a DCF comes from."""
    header = ["System"] + [f"{name} {kind}" for name in sets for kind in ("Pmiss", "Pfa")]
    rows = []
    for system, label in SYSTEMS.items():
        if system in results:
            scores = [results[system].get(name, {}).get(f"{collar:g}", {}) for name in sets]
            rows.append([label] + [percent(score.get(kind)) for score in scores for kind in ("p_miss", "p_fa")])
    return markdown_table(header, rows)


def report(results, sets, collars, speeds, corpus, command):
    """RESULTS.md: both tables with a note on the corpus. `corpus` is what steps.sad.results.describe_corpus gives."""
    parts = ["## Table 2: detection, in %"]
    for collar in collars:
        parts.append(f"Collar {collar:g} s{' (the default of the Fearless Steps scorer)' if collar == 0.5 else ''}:")
        parts.append(table_2(results, sets, collar))
    parts += ["Thresholds of the networks come from dev. The paper's text gives 0.51 where its table has 0.81.",
              "Missed and false speech without collar:", errors_table(results, sets, collars[0]),
              "## Table 3: fraction of real time, one thread, process time", table_3(speeds)]
    return report_text(f"Speech activity detection, corpus {corpus['name']}", _corpus_note(corpus, sets), command, parts)


def _corpus_note(corpus, sets):
    sets = ["train", *sets]
    sizes = ", ".join(f"{name} {corpus[name]['minutes']:.1f} min ({_speech(corpus[name]['speech'])})" for name in sets)
    if corpus["simulated"]:
        return ("Simulated streams: human recordings through a simulated Apollo 11 radio channel, at the times of the real "
                "transcript; eval_ami are real meetings with labels by hand. The paper's figures beside ours are for real "
                f"Apollo 11 audio, so only the order is comparable. {sizes}.")
    added = " and ".join(f"{corpus[name]['simulated']} of the {corpus[name]['streams']} {name} streams" for name in sets
                         if corpus[name]["simulated"])
    return f"{sizes}." + (f" Simulated, not of the corpus (human recordings through a simulated radio channel): {added}."
                          if added else "")


def _speech(share):
    return "no labels" if share is None else f"{percent(share, 1)} % speech"
