"""Files out of git repositories that are on this machine: clones, bare or not, at any commit that they hold."""

import os
import shutil
import subprocess
from pathlib import Path

from pyspeech.errors import UserError

PLACES = ("", ".git", "repo", "repo/.git")  # of the git directory, in the folder of a clone


def find_clone(folder: Path, repository: str) -> Path | None:
    """Find the git directory of "owner/name" in a folder: in owner+name, owner/name or owner/name.git, or in repo there."""
    for name in (repository.replace("/", "+"), repository, f"{repository}.git"):
        for place in PLACES:
            path = folder / name / place
            if (path / "HEAD").is_file() and (path / "objects").is_dir():
                return path
    return None


def read_file(clone: Path, commit: str, path: str) -> bytes | None:
    """The contents of a file at a commit; None where the clone lacks it. Raises UserError where git is not installed."""
    if not shutil.which("git"):
        raise UserError(f"reading {clone} needs git, which is not installed; install it, or leave the clones out")
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1"}  # a partial clone would go to the network
    command = ["git", f"--git-dir={clone}", "cat-file", "blob", f"{commit}:{path}"]
    answer = subprocess.run(command, capture_output=True, env=environment)
    return answer.stdout if answer.returncode == 0 else None
