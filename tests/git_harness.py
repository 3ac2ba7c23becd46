"""Small git repositories for tests."""

import subprocess


def make_repository(folder, files):
    """Commit {path: bytes, or None for one to remove} to the repository in `folder`, a new one if need be; its id."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True)
        _git(folder, "init", "-q")
    for path, contents in files.items():
        target = folder / path
        if contents is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(contents)
    _git(folder, "add", "-A")
    _git(folder, "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-q", "-m", "files")
    return _git(folder, "rev-parse", "HEAD")


def _git(folder, *arguments):
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
