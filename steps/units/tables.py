"""Tables 1 to 3 of Tjandra et al. 2020: ours, with the paper's figures beside. Plain data in, Markdown out.

scores: {system: [{"seed", "codes", "abx": {"within", "across"} in % or None, "bitrate": bit/s, "used", and, where the
corpus has an alignment, "phones": {"phone_purity", "cluster_purity", "pnmi", fractions}}, an entry a seed]}
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspeech.report.tables import decimals, markdown_table, percent, report_text, spread
from steps.chance import chance_note, chance_section, collapse_note
from steps.units.train import SYSTEMS

# Label, and the paper's ABX in % and bitrate in bit/s (English test set, its Tables 1 to 3); None where it has no figure.
TABLES = {
    "Table 1: input features": {
        "trf128_logmel": ("TrfVQVAE with log-Mel", 33.79, 171.05),
        "trf128": ("TrfVQVAE with MFCC", 21.91, 170.42),
    },
    "Table 2: models and codebook sizes": {
        "conv256": ("Conv VQVAE (stride 4, K=256)", 24.17, 184.32),
        "trf64": ("TrfVQVAE (stride 4, K=64)", 22.72, 141.82),
        "trf128": ("TrfVQVAE (stride 4, K=128)", 21.91, 170.42),
        "trf256": ("TrfVQVAE (stride 4, K=256)", 21.94, 194.69),
        "trf512": ("TrfVQVAE (stride 4, K=512)", 21.6, 217.47),
        "conv128": ("Conv VQVAE (stride 4, K=128)", None, None),
    },
    "Table 3: regularisation, K=128": {
        "trf128": ("TrfVQVAE (stride 4, K=128)", 21.91, 170.42),
        "trf128_smooth_1e-2": ("+ temp smooth (1e-2)", 21.88, 169.02),
        "trf128_smooth_5e-3": ("+ temp smooth (5e-3)", 21.67, 169.2),
        "trf128_smooth_1e-3": ("+ temp smooth (1e-3)", 21.75, 169.56),
        "trf128_jitter_0.05": ("+ temp jitter (0.05)", 21.57, 166.19),
        "trf128_jitter_0.075": ("+ temp jitter (0.075)", 21.70, 164.08),
        "trf128_smooth_5e-3_jitter_0.05": ("+ temp smooth (5e-3) + temp jitter (0.05)", 20.71, 171.99),
        "trf128_smooth_1e-3_jitter_0.05": ("+ temp smooth (1e-3) + temp jitter (0.05)", 20.14, 167.02),
    },
}
# Of the table of speech: a cell from an entry of synthesis.json, None where it has no figure.
SPEECH_COLUMNS = {
    "utterances": lambda entry: entry["utterances"],
    "nearer to the voice": lambda entry: percent(entry.get("nearer"), 1),
    "MCD / dB": lambda entry: decimals(entry.get("distance")),
    "of": lambda entry: entry.get("references"),
    "similarity": lambda entry: decimals(entry.get("similarity", {}).get("target")),
    "other": lambda entry: decimals(entry.get("similarity", {}).get("other")),
    "CER": lambda entry: percent(entry.get("recognition", {}).get("rate"), 1),
}
ALWAYS = ("utterances", "nearer to the voice", "MCD / dB", "of")  # the others where a package or a recogniser is there
MFCC = "MFCC, 100 a second"
MOST_PAIRS = 12  # of speaker and voice: where there are more, only their sums are shown
HEADER = ["Model", "ABX across", "ABX within", "bit/s", "codes in use", "seeds", "paper: ABX", "bit/s"]
PHONES = {"phone purity": "phone_purity", "cluster purity": "cluster_purity", "PNMI": "pnmi"}  # columns and keys, in %


def tables(scores: Mapping[str, Any]) -> dict[str, str]:
    """{title: Markdown} of the tables that `scores` has models for; each ends with the anchors."""
    made = {}
    for title, models in TABLES.items():
        present = [system for system in models if system in scores]
        if present:
            rows = [row(models[system][0], scores[system], models[system][1:]) for system in present]
            made[title] = markdown_table(HEADER, rows + anchor_rows(scores))
    return {**made, **phone_table(scores)}


def phone_table(scores: Mapping[str, Any]) -> dict[str, str]:
    """{title: Markdown} of the agreement with phones of all systems that have it; {} where none has."""
    inputs, models, regularised = TABLES.values()
    labels = {system: label for system, (label, *_) in {**inputs, **regularised, **models}.items()}
    sizes = {name: f"k-means (K={name[len('kmeans') :]})" for name in scores if name.startswith("kmeans")}
    rows = []
    for name, label in {**labels, **sizes}.items():
        found = [entry["phones"] for entry in scores.get(name, ()) if "phones" in entry]
        if found:
            columns = [spread([100 * one[key] for one in found]) for key in PHONES.values()]
            rows.append([label, scores[name][0]["codes"], *columns, len(found)])
    rows.sort(key=lambda row: row[1])
    return {"Units and phones": markdown_table(["Model", "K", *PHONES, "seeds"], rows)} if rows else {}


def names() -> dict[str, str]:
    """{system: its name in the tables}; a regularised one with what is regularised."""
    found = {system: label for models in TABLES.values() for system, (label, *_) in models.items()}
    found = {system: f"{found['trf128']} {label}" if label.startswith("+") else label for system, label in found.items()}
    return {**found, "mfcc": MFCC}


def anchor_rows(scores: Mapping[str, Any]) -> list[list[Any]]:
    """k-means at each number of codes, and the features themselves."""
    sizes = sorted(int(name[len("kmeans") :]) for name in scores if name.startswith("kmeans"))
    rows = [row(f"k-means (K={size})", scores[f"kmeans{size}"]) for size in sizes]
    return rows + ([row(MFCC, scores["mfcc"])] if "mfcc" in scores else [])


def row(label: str, entries: Sequence[Mapping[str, Any]], paper: tuple[float | None, float | None] = (None, None)) -> list[Any]:
    """Cells of a table; with several seeds the mean and the standard deviation."""
    abx = [
        [entry["abx"][mode] for entry in entries if entry["abx"] and entry["abx"][mode] is not None]
        for mode in ("across", "within")
    ]
    used = [entry["used"] for entry in entries if entry["used"] is not None]
    return [
        label,
        *map(spread, abx),
        spread([entry["bitrate"] for entry in entries if entry["bitrate"] is not None]),
        "/".join(map(str, used)) or None,
        len(entries),
        *(decimals(value, "g") for value in paper),
    ]


def chance_notes(system: str, entry: Mapping[str, Any]) -> list[str | None]:
    """Notes on a system by one seed whose units say next to nothing: by ABX, across speakers where there is that, and by
    the codes in use."""
    name, abx = f"{system}, seed {entry['seed']}", entry["abx"] or {}
    mode = "within" if abx.get("across") is None else "across"
    error = None if abx.get(mode) is None else abx[mode] / 100
    return [
        chance_note(name, "abx", error, f"test ({mode} speakers)"),
        collapse_note(name, entry["used"], entry["codes"], "test"),
    ]


def synthesis_parts(synthesis: Mapping[str, Any], model: Path | str) -> list[str]:
    """The section of speech from units. synthesis: of steps.units.voices.score_synthesis; model: its folder."""
    shown = [(f"{entry['source']} spoken by {entry['target']}", entry) for entry in synthesis["pairs"]]
    shown = shown if len(shown) <= MOST_PAIRS else []
    for name, label in (("conversions", "all in another's voice"), ("originals", "recordings, own voice")):
        if synthesis[name]["utterances"]:
            shown.append((label, synthesis[name]))
    if "recordings" in synthesis:
        shown.append(("recordings, recognised", {**synthesis["recordings"], "recognition": synthesis["recordings"]}))
    columns = {name: make for name, make in SPEECH_COLUMNS.items() if any(make(entry) for _, entry in shown) or name in ALWAYS}
    rows = [[label, *(make(entry) for make in columns.values())] for label, entry in shown]
    limit = synthesis["griffin_lim"]
    parts = [
        "## Speech from units",
        f"Codes of {synthesis['system']}, K={synthesis['codes']}, seed {synthesis['seed']}; one inverter.",
        markdown_table(["Speech", *columns], rows),
        "Nearer to the voice, in % of the utterances: likelier under a Gaussian over the voiced frames (12 MFCC, "
        "log F0) of the voice asked for than of the speaker; in one's own voice, than of all others. MCD: "
        "mel-cepstral distortion after time alignment to that voice's own recording of the sentence, where there "
        "is one.",
    ]
    if "similarity" in synthesis["conversions"]:
        parts.append(
            "Similarity: cosine of Resemblyzer's embedding and the mean of those of the voice's recordings; "
            "other: the same with the speaker's, in one's own voice with the nearest other voice's."
        )
    if "recogniser" in synthesis:
        parts.append(
            f"CER: character error rate in % of `{synthesis['recogniser']}` against the corpus's texts, as "
            "lower-case words; of the recordings themselves it is the recogniser's own."
        )
    if limit["utterances"]:
        parts.append(
            f"Griffin-Lim on the magnitudes of {limit['utterances']} recordings: spectral SNR "
            f"{limit['snr_db']:.1f} dB, {synthesis['real_time']:.3f} of real time (process time)."
        )
    voice = synthesis["pairs"][0]["target"]
    command = f"utils/resynthesize.py FILE --model {shlex.quote(str(model))} --speaker {voice} -o DIR"
    return [*parts, f"Another recording: `{command}`."]


def report(
    scores: Mapping[str, Any],
    note: str,
    command: str,
    synthesis: Mapping[str, Any] | None = None,
    model: Path | str | None = None,
) -> str:
    """RESULTS.md. synthesis, model: as for `synthesis_parts`; None where nothing is spoken."""
    parts = []
    for title, table in tables(scores).items():
        parts += [f"## {title}", table]
    parts += chance_section(
        note
        for system, entries in scores.items()
        if system in SYSTEMS
        for entry in entries
        for note in chance_notes(system, entry)
    )
    parts.append(
        "ABX in %, cosine, averaged as ZeroSpeech 2020 does; lower is better. The paper's figures are for the "
        "English test set of the challenge."
    )
    if phone_table(scores):
        parts.append(
            "Agreement of units with phones, silence among them, in % (Hsu et al. 2021, section 4.5): the share of frames "
            "whose phone is the commonest of their unit, or whose unit is the commonest of their phone; mutual information "
            "over the entropy of the phones. Compare systems of the same K."
        )
    parts += synthesis_parts(synthesis, model) if synthesis else []  # pyright: ignore[reportArgumentType]
    return report_text("Units from untranscribed speech", note, command, parts)
