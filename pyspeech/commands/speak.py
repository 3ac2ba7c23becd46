"""Speak recordings in another voice through discovered units, with trained models.

INPUT is an audio file ("-": standard input), a folder (searched recursively), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length. The VQ-VAE encodes the
speech, and the inverter speaks it in the voice of --speaker: DIR/NAME.wav (one channel, 16 bit, at the model's sampling
rate) for each recording, with the same duration and about the same level. Messages and a summary go to standard error.

examples:
  utils/resynthesize.py talk.wav --model exp/mini/models/synthesis --speaker V001 -o spoken
  utils/resynthesize.py recordings/ --model DIR --speaker V002 -o spoken
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyspeech.commands.arguments import add_device, add_inputs, tool_parser
from pyspeech.commands.terminal import clock, process_each, set_up_messages, speed
from pyspeech.errors import UserError
from pyspeech.model_file import find_model
from pyspeech.units.config import INVERTER


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument(
        "--model", metavar="DIR", required=True, help="folder of a VQ-VAE and its inverter (vqvae/model.pt, inverter/model.pt)"
    )
    parser.add_argument("--speaker", metavar="NAME", help="voice to speak with (default: the only one of the model)")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="write DIR/NAME.wav per recording")
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="random seed of the initial phases of Griffin-Lim (default: 0)"
    )
    add_device(parser)
    return parser


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a recording could not be resynthesised."""
    options = parser().parse_intermixed_args(arguments)
    if abs(options.seed) >= 2**63:
        raise UserError(f"--seed {options.seed}: expected less than 2**63")
    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, find_recordings

    recordings = find_recordings(options.inputs)
    synthesizer = load_synthesizer(options)
    voice = voice_of(options, synthesizer)
    check_output(options.output, recordings)
    check_inputs_stay(options.output, recordings)
    work = Work(synthesizer, voice, options, status)
    return process_each(recordings, work.process, status, "resynthesised", work.summary)


def load_synthesizer(options):
    from pyspeech.compat import named_device
    from pyspeech.units.api import UnitSynthesizer
    from pyspeech.units.checkpoint import PAIR_FILES, load_pair

    device = named_device(options.device)
    return UnitSynthesizer(*load_pair(find_model(options.model, INVERTER, (PAIR_FILES,)), device))


def voice_of(options, synthesizer):
    """The name of the voice to speak with; UserError where the model does not have it."""
    names = synthesizer.speakers
    if options.speaker is None and len(names) == 1:
        return names[0]
    if options.speaker not in names:
        given = "not given" if options.speaker is None else f"'{options.speaker}'"
        raise UserError(f"--speaker: {given}; the voices of {options.model} are {', '.join(names)}")
    return options.speaker


def output_path(folder, recording):
    from pyspeech.audio.recordings import file_stem

    return Path(folder, file_stem(recording) + ".wav")


def check_inputs_stay(folder, recordings):
    """UserError where what is written would be in the place of a recording."""
    inputs = {os.path.realpath(recording.path) for recording in recordings}
    for recording in recordings:
        path = output_path(folder, recording)
        if os.path.realpath(path) in inputs:
            raise UserError(f"-o {folder}: {path} is one of the recordings; choose another folder")


class Work:
    """Recordings to speech, one after the other, and what the summary says."""

    def __init__(self, synthesizer, voice, options, status):
        self.synthesizer, self.voice, self.options, self.status = synthesizer, voice, options, status
        self.done = 0
        self.audio = self.computing = 0.0  # seconds

    def process(self, recording, shown):
        from pyspeech.audio.recordings import stream_recording

        begin = time.perf_counter()
        blocks = stream_recording(
            recording,
            self.synthesizer.encoder.sampling_rate,
            self.options.channel,
            progress=lambda seconds: self.status.show(f"{shown} encoded {clock(seconds)}"),
        )
        speech = self.synthesizer.resynthesize_blocks(
            blocks, self.voice, self.options.seed, lambda share: self.status.show(f"{shown} spoken {share:.0%}"), recording.path
        )
        speech.save(output_path(self.options.output, recording))
        self.done, self.audio = self.done + 1, self.audio + len(speech.samples) / speech.sampling_rate
        self.computing += time.perf_counter() - begin

    def summary(self):
        return (
            f"{self.done} recording{'s' if self.done > 1 else ''}: {self.audio:.2f} s of audio in the voice of "
            f"{self.voice}; {speed(self.audio, self.computing)}"
        )
