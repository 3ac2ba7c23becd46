#!/usr/bin/env python3
"""Hide who speaks in audio files: formants are moved by a McAdams coefficient (VoicePrivacy's baseline B2)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.commands.anonymize import main
from pyspeech.commands.terminal import exit_after

if __name__ == "__main__":
    exit_after(main)
