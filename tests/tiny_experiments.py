"""Experiment folders as the four paper recipes leave them, made up in a moment, with names that are hostile to a page."""

import gzip
import json

import numpy as np
import soundfile

RATE = 16000
# What a file name can hold, and what a transcript can. `hostile` is to stay undefined.
NAME = "<img src=x onerror='hostile=1'> \"q\" \u202e\u05d0\u0628 😀"
TEXT = "</script><script>hostile=1</script> {{ 7777*7 }} a&b \"x\" 'y' \u202eאבג\u202c 😀"


def make_common(folder, title):
    """What the engine leaves: conf.yaml, stages, logs, and RESULTS.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".recipe").write_text(title + "\n", encoding="utf-8")
    command = "# the configuration of the latest run: egs/x/run.py --profile quick train.lr=0.5 'note=<b>'\n"
    (folder / "conf.yaml").write_text(command + f"seeds:\n- 41\n- 42\nname: {json.dumps(TEXT)}\n", encoding="utf-8")
    table = f"| System | dev DCF |\n|---|---:|\n| {TEXT} | 1.5 [1.2, 1.9] |\n| b | – |"
    (folder / "RESULTS.md").write_text(f"# {title}\n\nA note {TEXT}.\n\n## Table 2\n\n{table}\n", encoding="utf-8")
    record = {"version": 1, "config": {}, "inputs": {}, "outputs": {}, "number": 0, "attempts": 1, "seconds": 75.0}
    record.update(
        peak_memory_mb=512, cpus=2, gpus=0, host=NAME, finished="2026-01-02 03:04:05", environment="k2", commit="abc1"
    )
    write(folder / "stages" / "prepare.json", json.dumps(record))
    write(folder / "stages" / "tune.attempt.json", "{}")
    lines = ["==== stage 2 train_net, attempt 1, begun 2026-01-01"]
    for step in (10, 20, 30):
        lines.append(f"2026-01-01 00:00:00 INFO step {step}/30, epoch 0, loss {3 / step:.4f}, lr 0.1, 0.9 steps/s, ETA 0:00:01")
        lines.append(f"2026-01-01 00:00:00 INFO step {step}, validation: dcf {1 / step:.4f}, loss_en-IN 2.5")
    write(folder / "logs" / "2-train_net.log", "\n".join(lines) + "\n")
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def sound(path, seconds, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    tone = np.sin(2 * np.pi * (300 + 100 * seed) * np.arange(int(seconds * RATE)) / RATE)
    soundfile.write(path, 0.2 * tone + 0.01 * random.standard_normal(len(tone)), RATE)
    return path


def manifest(path, rows):
    """rows: (id, audio, seconds, supervision)"""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        for id, audio, seconds, supervision in rows:
            recording = {"id": id, "sources": [{"type": "file", "channels": [0], "source": str(audio)}], "sampling_rate": RATE}
            cut = {"id": id, "start": 0.0, "duration": seconds, "channel": 0, "supervisions": [supervision]}
            stream.write(json.dumps({**cut, "recording": recording}) + "\n")


def make_sad(folder, recordings=(NAME, "plain")):
    """Systems `good` and `bad`; good misses 0.5 s from 3.0 s on, bad 2 s from 2.0 s on and has 1 s of false alarm at 6.0 s."""
    make_common(folder, "Speech detection")
    lines = {"good": [(2.0, 3.0), (3.5, 4.0)], "bad": [(6.0, 7.0)]}
    rows = []
    for number, name in enumerate(recordings):
        rows.append((name, sound(folder / "corpus" / "audio" / f"{number}.wav", 20.0, number), 20.0, {}))
        reference = [(0, 2.0, "NS"), (2.0, 4.0, "S"), (4.0, 20.0, "NS")]
        fields = [f"x\t0\t{start}\t{end}\t{label}\tmanual\n" for start, end, label in reference]
        write(folder / "corpus/reference/eval" / f"{name}.txt", "".join(fields))
        for system, speech in lines.items():
            edges = [0.0, *(edge for span in speech for edge in span), 20.0]
            kinds = ["non-speech", "speech"] * len(edges)
            spans = zip(edges, edges[1:], kinds, strict=False)
            text = "".join(f"X\tX\tX\tSAD\tX\t{start:.2f}\t{end:.2f}\t{kind}\t0.5\n" for start, end, kind in spans)
            write(folder / "hypotheses" / system / "collar_0" / "eval" / f"{name}.txt", text)
        path = folder / "frame_scores" / "good" / "eval" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.linspace(0, 1, 1000, dtype=np.float32))
    manifest(folder / "corpus" / "eval.jsonl.gz", rows)
    x = np.linspace(0, 1, 11).tolist()
    sweep = {"thresholds": x, "dcf": [0.5 - 0.4 * t for t in x], "p_miss": x, "p_fa": [1 - t for t in x]}
    sweep.update(threshold=0.3, best_dcf=0.1)
    write(folder / "sweeps" / "good.json", json.dumps({"hmm": {"0": sweep}}))
    return folder


def make_asr(folder):
    """Utterances of two languages and speakers; the system `lid` says which language it heard, and its decoders stop."""
    make_common(folder, "Recognition")
    rows = []
    for language, speaker in (("en-IN", NAME), ("hi-IN", "s2")):
        lines = []
        for number in range(2):
            id = f"{language} {number} {NAME}"
            supervision = {"text": TEXT, "language": language, "speaker": speaker}
            rows.append((id, sound(folder / "corpus" / "audio" / f"{language}{number}.wav", 1.5, number), 1.5, supervision))
            hypothesis = f"{TEXT.replace('a&b', 'wrong')} more\nnew" if number else TEXT
            lines.append(
                {"id": id, "speaker": speaker, "ref": TEXT, "hyp": hypothesis, "predicted": language, "by_language": {}}
            )
        for system in ("lid", "plain"):
            write(folder / "decoded" / system / f"{language}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        posteriors = np.log(np.stack([np.linspace(0.5, 0.9, 20), np.linspace(0.5, 0.1, 20)], axis=1))
        named = {f"utterance {line['id']}": posteriors for line in lines}
        with open(folder / "decoded" / "lid" / f"{language}.npz", "wb") as stream:
            np.savez(stream, languages=["en-IN", "hi-IN"], **named)
    manifest(folder / "corpus" / "test.jsonl.gz", rows)
    confusion = {"en-IN": {"en-IN": 3, "hi-IN": 1}, "hi-IN": {"hi-IN": 2, TEXT: 2}}
    write(folder / "scores" / "lid.json", json.dumps({"lid": {"lid": {"confusion": confusion}}}))
    measured = {"errors": 1, "words": 10, "t_avg": 2.0}
    entries = [{"rule": "sum_logp", "tau_frames": None, "threshold": None, "dev": measured}]
    entries.append({"rule": "sum_logp", "tau_frames": 5, "threshold": 1.0, "dev": {**measured, "t_avg": 1.5}})
    write(folder / "early_stopping.json", json.dumps(entries))
    return folder


def make_spoof(folder):
    """Genuine utterances score 2, fakes -2, but for one of each; two engines."""
    make_common(folder, "Fake audio detection")
    rows, scores = [], {}
    for number in range(12):
        kind, id = ("genuine", "fake")[number % 2], f"u{number}<b>"
        custom = {"attack": ("-", f"A<i>{number % 4}")[number % 2], "condition": "clean"}
        rows.append(
            (id, sound(folder / "corpus" / "audio" / f"{number}.wav", 1.0, number), 1.0, {"text": kind, "custom": custom})
        )
        scores[id] = (2 if kind == "genuine" else -2) * (-1 if number in (4, 5) else 1) + 0.01 * number
    for name in ("dev", "eval"):
        manifest(folder / "corpus" / f"{name}.jsonl.gz", rows)
        write(folder / "scores" / "none" / "42" / f"{name}.txt", "".join(f"{id} {score}\n" for id, score in scores.items()))
    write(folder / "scores" / "none.json", json.dumps({"sets": {"eval": {"attacks": {"A<i>1": [0.1], "A<i>3": [0.4]}}}}))
    return folder


def make_units(folder):
    """Two test utterances of a speaker, spoken in two voices; the units of the system trf128."""
    make_common(folder, "Unit discovery")
    with open(folder / "conf.yaml", "a", encoding="utf-8") as stream:
        stream.write("synthesis: trf128\n")
    rows = []
    for number in range(2):
        id = f"S1_{number}"
        rows.append((id, sound(folder / "corpus" / f"{number}.wav", 1.0, number), 1.0, {"speaker": "S1", "text": TEXT}))
        for voice in ("V1", "V2"):
            sound(folder / "wavs" / f"{voice}_{number}.wav", 1.0, number + 3)
        path = folder / "units" / "trf128" / "42" / f"{id}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.eye(4, dtype=np.float32)[[0, 0, 1, 2, 2, 0]])
    manifest(folder / "corpus" / "test.jsonl.gz", rows)
    voices = [(voice, folder / "wavs" / f"{voice}_0.wav", 1.0, {"speaker": voice}) for voice in ("V1", "V2")]
    manifest(folder / "corpus" / "voice.jsonl.gz", voices)
    pairs = {"phones": [["a", TEXT, 12.0], ["a", "i", 40.0]], "speakers": [["S1", "S2", 20.0]]}
    entry = {"seed": 42, "codes": 8, "abx": {"across": 25.0}, "abx_by": {"across": pairs}, "bitrate": 60.0, "used": 3}
    write(folder / "scores" / "trf128.json", json.dumps([entry]))
    return folder
