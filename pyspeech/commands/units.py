"""Encode speech as discovered units with a trained VQ-VAE.

INPUT is an audio file ("-": standard input), a folder (searched recursively), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length; recordings longer than a
minute are encoded in overlapping windows. Units go to standard output, or with -o into one file per recording; messages
and a summary go to standard error.

formats:
  json      one line per unit: recording, start and end in seconds, code; then one per recording: seconds, units,
            distinct (number of codes in use), codes (number of codes)
  text      one line of codes per recording, from 0; on standard output after its name and a tab, as the scorers read them
  onehot    one line per unit: a one-hot vector, as ZeroSpeech expects
  vectors   one line per unit: its code vector, as the recipe zerospeech scores by ABX
  ark       these vectors of all recordings as matrices in a Kaldi table, DIR/units.ark and DIR/units.scp

examples:
  utils/encode_units.py talk.wav --model exp/mini/models/trf128/42
  utils/encode_units.py recordings/ --model DIR --format onehot -o units
  utils/encode_units.py recordings/ --model DIR --format text --merge > text_for_a_language_model.txt
  utils/encode_units.py wav.scp --model DIR --format ark -o units
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspeech.commands.arguments import add_device, add_inputs, tool_parser
from pyspeech.commands.terminal import clock, process_each, set_up_messages, shown_name, speed
from pyspeech.errors import UserError
from pyspeech.model_file import MODEL_FILE, find_model
from pyspeech.units.api import FORMATS, TABLE, UnitEncoder
from pyspeech.units.config import VQVAE


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument(
        "--model",
        metavar="DIR",
        required=True,
        help="folder of a VQ-VAE (model.pt), or of a VQ-VAE and its inverter (vqvae/model.pt, inverter/model.pt)",
    )
    parser.add_argument("--format", choices=FORMATS, default="json", help="format of the units (default: json)")
    parser.add_argument(
        "--merge", action="store_true", help="merge repeated codes into one unit, for language models; json has their lengths"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write one file per recording, or a table, into DIR")
    add_device(parser)
    return parser


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a recording could not be encoded."""
    options = parser().parse_intermixed_args(arguments)
    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, find_recordings

    if options.merge and options.format not in ("json", "text"):
        raise UserError(f"--merge --format {options.format}: expected json or text, as the scorers need a unit for each frame")
    recordings = find_recordings(options.inputs)
    if options.output:
        check_output(options.output, recordings)
    if options.format == TABLE:
        check_table(options, recordings)
    work = Work(load_encoder(options), options, status, len(recordings))
    if options.format != TABLE:
        return process_each(recordings, work.process, status, "encoded", work.summary)
    from pyspeech.units.features_files import kaldi_table

    with kaldi_table(Path(options.output, "units")) as work.write:  # pyright: ignore[reportAttributeAccessIssue]
        failed = process_each(recordings, work.process, status, "encoded", work.summary)
        if failed == 130:
            raise KeyboardInterrupt  # the table of some of them would look like that of all
        if not work.done:
            raise UserError(f"{options.output}: no table, as no recording could be encoded")
    return failed


def check_table(options, recordings):
    from pyspeech.units.features_files import check_name

    if not options.output:
        raise UserError(f"--format {TABLE}: expected -o DIR, a folder for units.ark and units.scp")
    for recording in recordings:
        check_name(shown_name(recording))


def load_encoder(options):
    from pyspeech.compat import named_device
    from pyspeech.units.checkpoint import PAIR_FILES, load_vqvae

    device = named_device(options.device)
    return UnitEncoder(load_vqvae(find_model(options.model, VQVAE, ((MODEL_FILE,), PAIR_FILES)), device))


class Work:
    """Recordings to units, one after the other, and what the summary says."""

    def __init__(self, encoder, options, status, total):
        self.encoder, self.options, self.status, self.several = encoder, options, status, total > 1
        self.done = self.units = 0
        self.audio = self.computing = 0.0  # seconds
        self.used = set()
        self.write = None  # puts (name, vectors) into the table, where there is one

    def process(self, recording, shown):
        from pyspeech.audio.recordings import stream_recording

        begin = time.perf_counter()
        blocks = stream_recording(
            recording,
            self.encoder.sampling_rate,
            self.options.channel,
            progress=lambda seconds: self.status.show(f"{shown} {clock(seconds)}"),
        )
        units = self.encoder.encode_blocks(blocks, shown_name(recording), recording.path)
        if self.options.merge:
            units = units.merged()
        self._output(recording, units)
        self.done, self.units = self.done + 1, self.units + len(units.codes)
        self.audio += units.duration
        self.computing += time.perf_counter() - begin
        self.used.update(units.codes.tolist())

    def _output(self, recording, units):
        """Write the units of one recording to its file, to the table, or to the screen."""
        if self.options.format == TABLE:
            self.write(units.name, units.vectors)  # pyright: ignore[reportOptionalCall]
            return
        if self.options.output:
            from pyspeech.audio.recordings import file_stem

            units.save(Path(self.options.output, file_stem(recording) + FORMATS[self.options.format]), self.options.format)
            return
        self.status.clear()
        if self.options.format == "text":
            sys.stdout.write(f"{units.name}\t")
        elif self.options.format != "json" and self.several:
            sys.stdout.write(f"# {units.name}\n")
        sys.stdout.writelines(units.lines(self.options.format))
        sys.stdout.flush()

    def summary(self):
        return (
            f"{self.done} recording{'s' if self.done > 1 else ''}: {self.audio:.2f} s of audio, {self.units} "
            f"units, {len(self.used)} of {self.encoder.num_codes} codes in use; "
            f"{speed(self.audio, self.computing)}"
        )
