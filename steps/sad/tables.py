"""The tables of Heitkaemper et al. 2020: ours, with the paper's figures beside."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspeech.report.tables import decimals, markdown_table, percent, report_text
from pyspeech.sad.registry import NETWORKS
from steps.chance import chance_note, chance_section
from steps.sad.pitches import pitch_section
from steps.sad.systems import WEBRTC

SYSTEMS = {  # and their rows
    "statistical": "Stat. SAD",
    "voicing": "Stat. SAD with voicing",
    **{name: network.label for name, network in NETWORKS.items()},
    "vote": "Majority of the networks",
    "vote_tuned": "Majority, thresholds tuned for it",
    "baseline": "Baseline (ours: Combo-SAD)",
    "untuned": "Stat. SAD, threshold 0",
    "voicing_untuned": "Stat. SAD with voicing, threshold 0",
    "threshold": "Stat. SAD, threshold of 2.1 alone",
    "webrtc": "WebRTC, best mode on dev",
}
# Table 2 of the paper, in %: F1, P, R and DCF on dev; DCF on eval. The text gives 0.51 for the Seg. RNN's dev DCF, and the
# DCF of majority voting.
PAPER_TABLE_2 = {
    "statistical": (94.32, 90.94, 97.97, 2.98, 4.60),
    **{name: network.paper for name, network in NETWORKS.items()},
    "vote": (None, None, None, None, 1.07),
    "baseline": (None, None, None, 12.50, 13.60),
}
PAPER_TABLE_3 = {"statistical": 0.00472, **{name: network.paper_speed for name, network in NETWORKS.items()}}


def names() -> dict[str, str]:
    """{system, or "system + smoothing" of those with several: its name on the report page}."""
    found = {**SYSTEMS, **{system: f"WebRTC, mode {mode}" for mode, system in enumerate(WEBRTC)}}
    for system, network in NETWORKS.items():
        first, *others = network.smoothings
        found[f"{system} + {first}"] = network.label
        found.update({f"{system} + {other}": f"{network.label.partition(' + ')[0]} + {other}" for other in others})
    return found


def labelled(results: Mapping[str, Any]) -> list[tuple[str, str]]:
    """[(system, its label)] of all results, in the order of SYSTEMS; one that has no label there is called by its name."""
    return [(name, SYSTEMS.get(name, name)) for name in dict.fromkeys([*SYSTEMS, *results]) if name in results]


def table_2(results: Mapping[str, Any], sets: Sequence[str], collar: float) -> str:
    """Table 2: F1, P, R and DCF on dev, DCF on the other sets (the paper's eval beside ours), in %."""
    others = [name for name in sets if name != "dev"]
    header = ["System", "dev F1", "dev P", "dev R", "dev DCF"] + [f"{name} DCF" for name in others]
    header += ["paper: dev F1", "P", "R", "DCF", "eval DCF"]
    rows = []
    for system, label in labelled(results):
        rows.append([label] + _our_cells(results[system], others, f"{collar:g}") + _paper_cells(system))
    return markdown_table(header, rows)


def with_best_webrtc(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The scores with "webrtc" in place of all of its modes: for each collar, of the one that does best on dev."""
    best = {}
    for collar in scores[WEBRTC[0]]["dev"]:
        mode = min(WEBRTC, key=lambda mode: scores[mode]["dev"][collar]["dcf"])
        for name, by_collar in scores[mode].items():
            best.setdefault(name, {})[collar] = by_collar[collar]
    return {**{system: by_set for system, by_set in scores.items() if system not in WEBRTC}, "webrtc": best}


def grid_table(grid: Sequence[dict[str, Any]], collar: str) -> str:
    """Figure 7: the DCF on dev in %, a row for each segment length, a column for each shift, in frames. `grid`: grid.json."""
    cells = {(row["length"], row["shift"]): row["dcf"][collar] for row in grid}
    shifts = sorted({shift for _, shift in cells})
    rows = [
        [f"L = {length}", *(percent(cells.get((length, shift))) for shift in shifts)]
        for length in sorted({length for length, _ in cells})
    ]
    return markdown_table(["frames", *(f"S = {shift}" for shift in shifts)], rows)


def _our_cells(by_set, others, collar):
    dev = by_set.get("dev", {}).get(collar, {})
    cells = [percent(dev.get(name)) for name in ("f1", "precision", "recall", "dcf")]
    return cells + [percent(by_set.get(name, {}).get(collar, {}).get("dcf")) for name in others]


def _paper_cells(system):
    return list(map(decimals, PAPER_TABLE_2.get(system, (None,) * 5)))


def table_3(speed: Mapping[str, float]) -> str:
    """Table 3: fraction of real time on one thread. `speed`: {system: fraction}."""
    rows = [[label, f"{speed[system]:.5f}", PAPER_TABLE_3.get(system)] for system, label in labelled(speed)]
    return markdown_table(["System", "ours", "paper"], rows)


def errors_table(results: Mapping[str, Any], sets: Sequence[str], collar: float) -> str:
    """Missed speech and false speech of every system on every set, in %: where a DCF comes from."""
    header = ["System"] + [f"{name} {kind}" for name in sets for kind in ("Pmiss", "Pfa")]
    rows = []
    for system, label in labelled(results):
        scores = [results[system].get(name, {}).get(f"{collar:g}", {}) for name in sets]
        rows.append([label] + [percent(score.get(kind)) for score in scores for kind in ("p_miss", "p_fa")])
    return markdown_table(header, rows)


def chance_notes(results: Mapping[str, Any], collar: float) -> list[str | None]:
    """A note for each network that detects next to nothing on dev."""
    return [
        chance_note(SYSTEMS[system], "dcf", results[system].get("dev", {}).get(f"{collar:g}", {}).get("dcf"), "dev")
        for system in NETWORKS
        if system in results
    ]


def report(
    results: Mapping[str, Any],
    sets: Sequence[str],
    collars: Sequence[float],
    speeds: Mapping[str, float],
    grid: Sequence[dict[str, Any]],
    frame_shift: float,
    corpus: Mapping[str, Any],
    command: str,
) -> str:
    """RESULTS.md: the tables with a note on the corpus. `corpus` is what steps.sad.results.describe_corpus gives; grid:
    grid.json, empty where no cell was trained."""
    parts = ["## Table 2: detection, in %"]
    for collar in collars:
        parts.append(f"Collar {collar:g} s{' (the default of the Fearless Steps scorer)' if collar == 0.5 else ''}:")
        parts.append(table_2(results, sets, collar))
    parts += [
        "Thresholds come from dev, for the collar of each table, in the middle of those around the lowest DCF that are "
        "nearly as good; none where a row says so. The weights of a network are "
        "those of the lowest DCF on dev, the mean over these collars. The paper's text gives 0.51 where its table has "
        "0.81; it gives the DCF of majority voting for eval alone."
    ]
    for collar in collars:
        parts += [f"Missed and false speech, collar {collar:g} s:", errors_table(results, sets, collar)]
    parts += chance_section(chance_notes(results, collars[0]))
    if grid:
        parts.append(f"## Figure 7: segment RNN, DCF on dev in %, by length and shift in frames of {1000 * frame_shift:g} ms")
        for collar in collars:
            parts += [
                f"Collar {collar:g} s ({SYSTEMS['cnn']}: {percent(results['cnn']['dev'][f'{collar:g}']['dcf'])}):",
                grid_table(grid, f"{collar:g}"),
            ]
    parts += pitch_section({name: corpus[name]["pitch"] for name in ["train", *sets] if "pitch" in corpus[name]})
    parts += ["## Table 3: fraction of real time, one thread, process time", table_3(speeds)]
    return report_text(f"Speech activity detection, corpus {corpus['name']}", _corpus_note(corpus, sets), command, parts)


def _corpus_note(corpus, sets):
    sets = ["train", *sets]
    sizes = ", ".join(f"{name} {corpus[name]['minutes']:.1f} min ({_speech(corpus[name]['speech'])})" for name in sets)
    real = " and ".join(
        f"{corpus[name]['real']} of the {corpus[name]['streams']} {name} streams" for name in sets if corpus[name].get("real")
    )
    real = real and f" Real recordings with labels, from folders: {real}."
    if corpus["simulated"]:
        return (
            "Simulated streams: human recordings through a simulated Apollo 11 radio channel, at the times of the real "
            "transcript; eval_ami are real meetings with labels by hand. The paper's figures beside ours are for real "
            f"Apollo 11 audio, so only the order is comparable. {sizes}.{real}"
        )
    added = " and ".join(
        f"{corpus[name]['simulated']} of the {corpus[name]['streams']} {name} streams"
        for name in sets
        if corpus[name]["simulated"]
    )
    return f"{sizes}.{real}" + (
        f" Simulated, not of the corpus (human recordings through a simulated radio channel): {added}." if added else ""
    )


def _speech(share):
    return "no labels" if share is None else f"{percent(share, 1)} % speech"
