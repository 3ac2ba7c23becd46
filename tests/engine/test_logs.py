"""Lines for the terminal, which several processes may share."""

import io
import logging
import sys

from pyspeech.commands import terminal
from pyspeech.engine.logs import say


class Writes(io.StringIO):
    """A stream that keeps each write by itself, as one without buffer (PYTHONUNBUFFERED) passes it on."""

    def __init__(self):
        super().__init__()
        self.all = []

    def write(self, text):
        self.all.append(text)
        return len(text)

    def reconfigure(self, **options):
        pass


def test_a_line_is_one_write():
    stream = Writes()
    say("a\nb", stream)
    assert stream.all == ["a\nb\n"]


def test_a_warning_of_a_tool_is_one_write(monkeypatch):
    stream, root = Writes(), logging.getLogger()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", Writes())
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setitem(logging._levelToName, logging.WARNING, "WARNING")
    terminal.set_up_messages()
    logging.warning("%s: silent", "a.wav")
    assert stream.all == ["warning: a.wav: silent\n"]
