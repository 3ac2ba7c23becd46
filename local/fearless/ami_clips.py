"""The AMI clips: 14 stretches of 30 s of real meetings with human speech labels, a second evaluation set (`eval_ami`).

They come with the source distribution of pyannote-audio (MIT; the AMI meeting corpus, CC BY 4.0, Carletta et al.
2005): headset mixes at 16 kHz, here brought to 8 kHz, and RTTM files with the turns of 27 speakers. Speech is the
union of the turns. Meetings are nothing like mission audio: hardly any noise, overlapping talk, 61 % speech, two
clips without a pause. They show whether a detector is of use beyond the radio.

Where the voices of the simulated streams cannot be had (no Debian archive), the speakers of the clips stand in for
them, in the splits of the AMI corpus, and only the two clips of its test split remain for evaluation.

Clips without labels are an error; written are audio/eval_ami/*.wav, eval_ami.jsonl.gz and reference/eval_ami/*.txt.
"""

import logging
from pathlib import Path

from local import voices
from pyspeech.data.audio_files import write_audio
from pyspeech.data.manifests import clear_split, write_split
from pyspeech.sad.formats import write_reference
from pyspeech.sad.segments import clip, union

RATE = 8000


def prepare(out: str | Path, log: logging.Logger) -> dict[str, int]:
    """Write audio/eval_ami/*.wav, eval_ami.jsonl.gz and reference/eval_ami/*.txt into `out`; returns {"eval_ami":
    clips}."""
    from lhotse import Recording

    out = Path(out).resolve()
    clips, turns = voices.fetch_ami()
    if not voices.packages_available():
        clips = {name: path for name, path in clips.items() if name.startswith("tst")}
    clear_split(out, "eval_ami")
    streams = []
    for name, source in clips.items():
        path = out / "audio" / "eval_ami" / f"ami_{name}.wav"
        write_audio(path, voices.load_clip(source, RATE), RATE)
        recording = Recording.from_file(path, recording_id=path.stem)
        speech = clip(union([(start, end) for start, end, _ in turns[name]]), recording.duration)
        write_reference(out / "reference" / "eval_ami" / f"{path.stem}.txt", path.stem, speech, recording.duration)
        streams.append((recording, speech, None))
    write_split(out, "eval_ami", streams)
    log.info("eval_ami: %d clips", len(streams))
    return {"eval_ami": len(streams)}
