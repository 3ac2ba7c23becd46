#!/usr/bin/env python3
"""Record what the recipes and the bundled models produce, to prove that a change of structure changes nothing.

    ./path.sh tests/freeze.py run WORK                  run --profile quick of every recipe in WORK/<environment>/ and write
                                                        SHA-256 of what they made to WORK/<environment>.json
    ./path.sh tests/freeze.py run WORK --root CLONE     the same with the code of another clone, such as one of an older commit
    ./path.sh tests/freeze.py compare OLD.json NEW.json list what differs; exit status 1 if anything does
    ./path.sh tests/freeze.py readable WORK             check that every stage of the experiments in WORK is up to date

Hashed: results.json, manifests, scores, hypotheses, weights of trained models, and what the bundled detectors give for the
streams of the quick recipe. Left out: logs, figures, stage records, checkpoints, RESULTS.md, report pages. Paths of the
experiment and of the clone count as equal wherever they are. WORK has to be the same for both runs where a corpus keeps paths
of its own.
Results depend on the processor: compare runs of one machine.
"""

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"logs", "stages", "figures", "training", "conf.yaml", "RESULTS.md", "report", ".lock", ".recipe"}
BINARY = {".wav", ".flac", ".npy", ".npz", ".ark", ".model", ".onnx", ".h5", ".pcm", ".llc"}


def environment():
    return os.environ.get("PYSPEECH_ENV", "system")


def recipes(root):
    return sorted(path.parent.name for path in (root / "egs").glob("*/run.py"))


def run(command, root, log):
    """Run a command with the code of a clone in the Python that runs this; its output goes to `log`."""
    paths = {"PYTHONPATH": str(root), "PYSPEECH_ENV": "system", "PYSPEECH_ROOT": str(root), "PYSPEECH_DEVICE": "cpu"}
    cache = {"PYSPEECH_CACHE": os.environ.get("PYSPEECH_CACHE", str(ROOT / ".cache"))}
    with open(log, "w", encoding="utf-8") as stream:
        done = subprocess.run(
            [sys.executable, *map(str, command)], env={**os.environ, **paths, **cache}, stdout=stream, stderr=subprocess.STDOUT
        )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}; see {log}")


def digests(folder, replaced):
    """{path: SHA-256} of the files of a folder that are results; replaced: {text of a path: what it counts as}."""
    return {
        str(path.relative_to(folder)): digest(path, replaced)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not LEFT_OUT & set(path.relative_to(folder).parts) and ".tmp." not in path.name
    }


def digest(path, replaced):
    if path.suffix == ".pt":
        return digest_of_weights(path)
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if path.suffix not in BINARY:
        for text, name in replaced.items():
            content = content.replace(text.encode(), name.encode())
    return hashlib.sha256(content).hexdigest()


def digest_of_weights(path):
    """Of the tensors of a model file: its header has the version of the code that wrote it."""
    import torch

    content, state = torch.load(path, map_location="cpu"), hashlib.sha256()
    for name, value in sorted(content["model"].items()):
        state.update(name.encode())
        state.update(value.contiguous().view(-1).numpy().tobytes())
    return state.hexdigest()


def run_bundled(root, streams, out):
    """What the bundled detectors give for some recordings, as files in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for point in ("turns", "words"):
        command = [root / "utils/detect_speech.py", "--point", point, "--format", "json", "--scores", "-o", out / point]
        run([*command, *streams], root, out / f"{point}.log")
    run([root / "utils/detect_speech.py", "--system", "statistical", "-o", out / "statistical", *streams], root, out / "s.log")
    command = [root / "utils/detect_fake.py", "--format", "json", "-o", out / "fake.json"]
    run([*command, *streams], root, out / "fake.log")
    run([root / "utils/anonymize.py", streams[0], out / "anonymous.wav"], root, out / "anonymize.log")
    for log in out.glob("*.log"):
        log.unlink()


def run_all(work, root):
    work, found, begun = work.resolve() / environment(), {}, time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    for recipe in recipes(root):
        folder = work / recipe
        run(
            [root / "egs" / recipe / "run.py", "--profile", "quick", "--exp", folder, "--jobs", 1], root, work / f"{recipe}.log"
        )
        replaced = {str(folder): "EXP", str(root): "ROOT", str(ROOT): "ROOT"}
        found.update({f"{recipe}/{name}": value for name, value in digests(folder, replaced).items()})
        print(f"{recipe}: {time.monotonic() - begun:.0f} s", flush=True)
    streams = sorted((work / "fearless/corpus").rglob("*.wav"))[-6:] or sorted((work / "fearless/corpus").rglob("*.flac"))[-6:]
    run_bundled(root, streams, work / "bundled")
    replaced = {str(work): "WORK", str(root): "ROOT"}
    found.update({f"bundled/{name}": value for name, value in digests(work / "bundled", replaced).items()})
    target = work.with_name(work.name + ".json")
    target.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{target}: {len(found)} digests")


def compare(old, new):
    before, after = (json.loads(Path(path).read_text(encoding="utf-8")) for path in (old, new))
    different = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    for name in different:
        print(name, "changed" if name in before and name in after else "missing" if name in before else "new")
    print(f"{len(before)} and {len(after)} digests, {len(different)} different")
    return bool(different)


def check_readable(work):
    """Every stage of experiments that another version of the code has made is up to date."""
    stale = []
    for recipe in recipes(ROOT):
        log = work / f"{recipe}.dry-run"
        folder = work / environment() / recipe
        run([ROOT / "egs" / recipe / "run.py", "--profile", "quick", "--exp", folder, "--dry-run"], ROOT, log)
        stale += [f"{recipe}: {line}" for line in log.read_text().splitlines() if "up to date" not in line]
    print("\n".join(stale) or "every stage is up to date")
    return bool(stale)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "compare", "readable"))
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="CLONE")
    options = parser.parse_args()
    if options.action == "compare":
        return compare(*options.paths)
    return check_readable(*options.paths) if options.action == "readable" else run_all(*options.paths, options.root.resolve())


if __name__ == "__main__":
    sys.exit(main())
