"""Tables of egs/zerospeech from made-up scores."""

from pyspeech.report.tables import spread
from steps.units.tables import report, row, tables


def entry(across, bitrate, used, seed=1):
    return {"seed": seed, "codes": 128, "abx": {"within": across - 3, "across": across}, "bitrate": bitrate, "used": used}


SCORES = {
    "trf128": [entry(20.0, 170.0, 127), entry(22.0, 171.0, 128)],
    "conv256": [entry(25.0, 180.25, 200)],
    "kmeans128": [entry(23.0, 172.0, 128)],
    "mfcc": [{"abx": {"within": 8.0, "across": 15.0}, "bitrate": None, "used": None}],
}


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_tables_have_the_models_that_are_there_the_paper_and_the_anchors():
    made = tables(SCORES)
    assert [title.split(":")[0] for title in made] == ["Table 1", "Table 2", "Table 3"]
    lines = [cells(line) for line in made["Table 2: models and codebook sizes"].splitlines()]
    assert lines[0] == ["Model", "ABX across", "ABX within", "bit/s", "codes in use", "seeds", "paper: ABX", "bit/s"]
    assert lines[2] == ["Conv VQVAE (stride 4, K=256)", "25.00", "22.00", "180.25", "200", "1", "24.17", "184.32"]
    assert lines[3] == [
        "TrfVQVAE (stride 4, K=128)",
        "21.00 ± 1.41",
        "18.00 ± 1.41",
        "170.50 ± 0.71",
        "127/128",
        "2",
        "21.91",
        "170.42",
    ]
    assert lines[4][:5] == ["k-means (K=128)", "23.00", "20.00", "172.00", "128"]
    assert lines[5] == ["MFCC, 100 a second", "15.00", "8.00", "–", "–", "1", "–", "–"]


def test_phones_where_there_is_an_alignment():
    def with_phones(one, purity):
        return {**one, "phones": {"phone_purity": purity, "cluster_purity": purity / 2, "pnmi": purity / 4}}

    scores = {name: [with_phones(one, 0.5 + 0.1 * place) for place, one in enumerate(SCORES[name])] for name in SCORES}
    scores["mfcc"], scores["conv256"][0]["codes"] = SCORES["mfcc"], 256
    lines = [cells(line) for line in tables(scores)["Units and phones"].splitlines()]
    assert lines[0] == ["Model", "K", "phone purity", "cluster purity", "PNMI", "seeds"] and len(lines) == 5
    assert lines[2] == ["TrfVQVAE (stride 4, K=128)", "128", "55.00 ± 7.07", "27.50 ± 3.54", "13.75 ± 1.77", "2"]
    assert [line[:2] for line in lines[3:]] == [["k-means (K=128)", "128"], ["Conv VQVAE (stride 4, K=256)", "256"]]
    assert "entropy of the phones" in report(scores, "note", "run") and "of the phones" not in report(SCORES, "note", "run")


def test_no_items_no_abx():
    assert row("x", [{"abx": None, "bitrate": 1.0, "used": 2}]) == ["x", None, None, "1.00", "2", 1, None, None]
    assert spread([]) is None and tables({"mfcc": SCORES["mfcc"]}) == {}
    across = {"abx": {"within": None, "across": 20.0}, "bitrate": 1.0, "used": 2}
    assert row("x", [across, across])[:3] == ["x", "20.00 ± 0.00", None]
    assert "Made by `run`." in report(SCORES, "note", "run")
