"""The recipe engine: numbered stages that run in order, are skipped while up to date, and can be killed anywhere.

    recipe = Recipe("Title of the experiment", Config, conf=here / "conf", profile="mini")

    @recipe.stage(config=["corpus"], outputs=["manifests/{train,dev}.jsonl.gz"], cpus=2)
    def prepare(exp, conf):
        '''Corpus to manifests.'''

    if __name__ == "__main__":
        recipe.main()

The command line is described in pyspeech.engine.cli, when a stage is stale in pyspeech.engine.plan, and what a
stage gets as `exp` in pyspeech.engine.run. Importing this module is instant: no torch, no lhotse, no numpy.
"""

import os
import sys
from collections.abc import Sequence

from pyspeech.engine.declaration import Declaration
from pyspeech.engine.main import run_command
from pyspeech.engine.process import stages_at_once
from pyspeech.engine.run import Experiment
from pyspeech.errors import UserError, folder_or, list_of_folders, named_folders, requirement
from pyspeech.launch import open_closed_streams, take_interrupts

# All that a recipe needs of the engine.
__all__ = ["Experiment", "Recipe", "folder_or", "list_of_folders", "named_folders", "requirement", "stages_at_once"]


class Recipe(Declaration):
    """A Declaration with a command line."""

    def main(self, arguments: Sequence[str] | None = None) -> Experiment | None:
        """Do what the command line says, and show RESULTS.md in the end, where the last stage has left one.

        Returns the Experiment once the last of all stages is done, else None (--help, or a --stop-stage before it).
        Exits with status 1 after an error, 130 after Ctrl-C, 143 after SIGTERM.
        """
        open_closed_streams()
        take_interrupts()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # Names that the terminal cannot show.
                stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
        try:
            return run_command(self, list(sys.argv[1:] if arguments is None else arguments))
        except UserError as error:
            print(error, file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:  # | head
            sys.exit(1)
        finally:
            try:
                sys.stdout.flush()
            except OSError:  # its reader has gone: Python must not complain again while it exits
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
