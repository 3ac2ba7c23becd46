"""Kaldi's rules of a data directory for tests: validate_data_dir.sh and validate_text.pl, done again in plain Python.

From what the scripts do, command by command: awk's fields, sort in the C locale, cmp of whole lists. Everything is in
memory as bytes, nothing is shared with pyspeech/kaldi.
"""

import re
from pathlib import Path

ODD_SPACE = re.compile("[\x0b\x0c\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
UTTERANCE_TABLES = ("feats.scp", "vad.scp", "utt2lang", "utt2uniq", "utt2dur", "utt2num_frames", "utt2warp")
SPEAKER_TABLES = ("cmvn.scp", "spk2gender", "spk2warp")


def validate_data_dir(folder):
    """Why Kaldi refuses a data directory (first reason), or None; called with --no-feats, and --no-text if there is none."""
    try:
        _validate(Path(folder))
    except AssertionError as reason:
        return str(reason) or "refused"
    return None


def _first(rows):
    return [row[0] if row else b"" for row in rows]


def _sorted_table(path):
    data = path.read_bytes()
    assert data.endswith(b"\n") or not data, f"{path.name}: invalid newline"
    rows = [re.findall(rb"[^ \t]+", line) for line in data.split(b"\n")[:-1]]
    assert _first(rows) == sorted(set(_first(rows))), f"{path.name}: not sorted and unique"
    return rows


def _validate(folder):
    for name in ("spk2utt", "utt2spk"):
        assert (folder / name).is_file() and (folder / name).stat().st_size, f"no {name}"
    utt2spk = _sorted_table(folder / "utt2spk")
    assert all(len(row) == 2 for row in utt2spk), "utt2spk has wrong format"
    lines = (folder / "utt2spk").read_bytes().split(b"\n")[:-1]
    by_speaker = sorted(lines, key=lambda line: (line[len(re.match(rb"[ \t]*[^ \t]+", line)[0]) :], line))  # sort -k2
    assert by_speaker == lines, "utt2spk is not in sorted order when sorted first on speaker-id"
    spk2utt = _sorted_table(folder / "spk2utt")
    assert [[each, row[0]] for row in spk2utt for each in row[1:]] == utt2spk, "spk2utt and utt2spk do not match"
    utterances, speakers = _first(utt2spk), _first(spk2utt)
    if (folder / "text").exists():
        _validate_text((folder / "text").read_bytes())
        assert _first(_sorted_table(folder / "text")) == utterances, "text: other utterances"
    assert (folder / "wav.scp").is_file(), "no wav.scp"
    recordings = _first(_sorted_table(folder / "wav.scp"))
    assert not re.search(rb"(?m)^\S+\s+~", (folder / "wav.scp").read_bytes()), "wav.scp: tilde"
    if (folder / "segments").exists():
        segments = _sorted_table(folder / "segments")
        assert all(len(row) == 4 and float(row[3]) > float(row[2]) for row in segments), "bad line in segments"
        assert _first(segments) == utterances, "segments: other utterances"
        assert sorted({row[1] for row in segments}) == recordings, "segments and wav.scp: other recordings"
    else:
        assert recordings == utterances, "wav.scp: other utterances"
    for names, keys in ((UTTERANCE_TABLES, utterances), (SPEAKER_TABLES, speakers), (("reco2dur",), recordings)):
        for name in names:
            if (folder / name).exists():
                rows = _sorted_table(folder / name)
                assert _first(rows) == keys, f"{name}: other ids"
                if name in VALUES:
                    assert all(len(row) == 2 and VALUES[name](row[1]) for row in rows), f"{name}: bad line"


VALUES = {
    "utt2dur": lambda value: float(value) > 0,
    "reco2dur": lambda value: float(value) > 0,
    "utt2num_frames": lambda value: float(value) > 0 and float(value) == int(float(value)),
    "utt2warp": lambda value: 0.5 < float(value) < 1.5,
    "spk2warp": lambda value: 0.5 < float(value) < 1.5,
    "spk2gender": lambda value: value in (b"m", b"f"),
}


def _validate_text(data):
    assert data, "text is empty"
    for symbol in (b"<s>", b"</s>", b"#0"):
        assert not re.search(rb"(?<![A-Za-z0-9_])" + re.escape(symbol) + rb"(?![A-Za-z0-9_])", data), f"text has {symbol}"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    assert "\r" not in text and not ODD_SPACE.search(text), "text: disallowed white space"
