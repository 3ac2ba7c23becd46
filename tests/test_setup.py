"""path.sh and pyspeech.launch on a copy of the repository, with Pythons that only pretend to install."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
TOOLS = [
    "awk",
    "bash",
    "cat",
    "chmod",
    "cmp",
    "cp",
    "cut",
    "df",
    "dirname",
    "du",
    "env",
    "find",
    "grep",
    "head",
    "ls",
    "mkdir",
    "mv",
    "readlink",
    "rm",
    "sed",
    "sh",
    "sleep",
    "tail",
    "true",
    "wc",
]

# A Python that says it has version {version} and whose venv and pip leave marks in {calls}. `-c` goes to a real Python,
# except where path.sh asks for the version.
FAKE_PYTHON = r"""#!/usr/bin/env bash
echo "$*" >>{calls}
case "$*" in
    *ensurepip*) echo "{version}" ;;
    "-c "*) exec "{real}" -I "$@" ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/pytest" ;;
    "-m pip "*) if [ -e {folder}/pip ]; then . {folder}/pip; fi ;;
    "-m pyspeech.compat") if [ -e {folder}/broken ]; then cat {folder}/broken; exit 1; fi
        echo "environment $PYSPEECH_ENV, a fake" ;;
    *) echo "ran in ${{PYSPEECH_ENV:-nothing}} with $*" ;;
esac
"""


class Machine:
    """A copy of path.sh in `root`, and a PATH with the basic tools and the Pythons that a test puts there."""

    def __init__(self, folder):
        self.folder, self.bin, self.root = folder, folder / "bin", folder / "re po"
        self.calls_file = folder / "calls"
        for each in (self.bin, folder / "home", self.root / "requirements"):
            each.mkdir(parents=True)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        shutil.copy(REPOSITORY / "path.sh", self.root)
        for name in ("build", "k2", "k2-wheel", "torch2", "uv"):
            (self.root / "requirements" / f"{name}.txt").write_text(f"# {name}\n")
        self.env = {"PATH": str(self.bin), "HOME": str(folder / "home"), "LC_ALL": "C"}
        self.script("uname", "echo Linux x86_64")
        self.script("df", "echo header; echo x 9 9 999999999 1% /")

    def script(self, name, text, folder=None):
        path = Path(folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text if text.startswith("#!") else f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)
        return path

    def python(self, version, name=None, folder=None, state="ok"):
        name = name or f"python{version}"
        return self.script(
            name,
            FAKE_PYTHON.format(version=f"{version} {state}", calls=self.calls_file, folder=self.folder, real=sys.executable),
            folder,
        )

    def pip(self, text):
        """What pip does from now on: lines of bash."""
        (self.folder / "pip").write_text(text + "\n")

    def calls(self, start=""):
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [line for line in lines if line.startswith(start)]

    def start(self, *command, cwd=None, **env):
        return subprocess.Popen(
            [str(self.root / "path.sh"), *command],
            env={**self.env, **env},
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *command, **options):
        process = self.start(*command, **options)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def bash(self, text, shell="bash", **env):
        return subprocess.run(
            [shutil.which(shell), "-c", text],
            env={**self.env, **env},
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )

    def wait_for(self, call):
        deadline = time.monotonic() + 30
        while not self.calls(call):
            assert time.monotonic() < deadline, f"nobody called {call}"
            time.sleep(0.02)


SHELLS = pytest.mark.parametrize("shell", [name for name in ("bash", "zsh") if shutil.which(name)])


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_makes_the_environment_once_then_runs_the_command_in_it(machine):
    machine.python("3.10")
    first = machine.run("python", "x.py", "two words")
    assert (first.returncode, first.stdout) == (0, "ran in k2 with x.py two words\n")
    assert "making environment k2" in first.stderr and "is complete" in first.stderr
    installs = machine.calls("-m pip install")
    assert [line.rsplit("/", 1)[1] for line in installs] == ["build.txt", "k2.txt", "k2-wheel.txt"]
    assert "--no-deps" in installs[2] and "--no-deps" not in installs[1]
    second = machine.run("python", "y.py", cwd="/")
    assert (second.returncode, second.stdout, second.stderr) == (0, "ran in k2 with y.py\n", "")
    assert machine.calls("-m pip install") == installs
    assert len(machine.calls("-m venv")) == 1


def test_command_gets_path_exit_status_and_closed_lock(machine):
    machine.python("3.10")
    machine.run("true")
    text = 'echo "$PYTHONPATH|$PATH|$PYSPEECH_ENV|$PYSPEECH_ROOT|$VIRTUAL_ENV"; exit 7'
    done = machine.run("bash", "-c", text, PYTHONPATH="/other")
    root = machine.root
    assert done.stdout == f"{root}:/other|{root}/.venv/k2/bin:{machine.bin}|k2|{root}|{root}/.venv/k2\n"
    assert done.returncode == 7
    (root / "requirements" / "k2.txt").write_text("# changed\n")
    done = machine.run("bash", "-c", "{ true >&9; } 2>/dev/null && echo open || echo closed")
    assert done.stdout == "closed\n"
    assert machine.run("nosuch").returncode == 127


def test_without_a_command_it_describes_the_environment_and_help_makes_none(machine):
    machine.python("3.10")
    help_ = machine.run("--help")
    assert "source path.sh" in help_.stdout and not (machine.root / ".venv").exists()
    assert machine.run().stdout == "environment k2, a fake\n"


def test_changed_requirements_are_brought_in_by_the_same_command(machine):
    machine.python("3.10")
    machine.run("true")
    (machine.root / "requirements" / "k2.txt").write_text("# another\n")
    assert machine.run("true").returncode == 0
    assert len(machine.calls("-m venv")) == 1 and len(machine.calls("-m pip install")) == 6
    assert machine.run("true").stderr == ""
    # An update that pip refuses leaves the environment to the next attempt, as it was.
    (machine.root / "requirements" / "k2.txt").write_text("# a third\n")
    machine.pip("echo ERROR: refused; exit 1")
    assert machine.run("true").returncode == 1
    machine.pip("")
    assert machine.run("true").returncode == 0
    assert len(machine.calls("-m venv")) == 1


def test_a_repository_that_was_moved_gets_its_environment_anew(machine):
    machine.python("3.10")
    machine.run("true")
    machine.root = machine.root.rename(machine.folder / "moved")
    assert machine.run("python", "x").stdout == "ran in k2 with x\n"
    assert len(machine.calls("-m venv")) == 2


def test_a_copy_that_links_the_environment_of_another_uses_it_as_it_stands(machine):
    machine.python("3.10")
    machine.run("true")
    first = machine.root
    machine.root = machine.folder / "copy"
    shutil.copytree(first, machine.root, ignore=shutil.ignore_patterns(".venv"))
    (machine.root / ".venv").symlink_to(first / ".venv")
    done = machine.run("python", "x")
    assert (done.stdout, done.stderr) == ("ran in k2 with x\n", "") and len(machine.calls("-m venv")) == 1
    (machine.root / "requirements" / "k2.txt").write_text("# another\n")
    assert machine.run("true").returncode == 0
    assert len(machine.calls("-m venv")) == 1 and len(machine.calls("-m pip install")) == 6


PIP = "-m pip install --no-input --progress-bar off"


@pytest.mark.parametrize("moment", ["-m venv", f"{PIP} -r", f"{PIP} --no-build", "-m pyspeech.compat"])
def test_killed_at_any_moment_the_same_command_finishes(machine, moment):
    fake = machine.python("3.10")
    slow = fake.read_text().replace('case "$*" in', f'case "$*" in "{moment}"*) sleep 60 ;; esac\ncase "$*" in', 1)
    machine.script("python3.10", slow)
    process = machine.start("true")
    machine.wait_for(moment)
    assert not (machine.root / ".venv/k2/complete").exists()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    half_written = machine.root / ".venv/k2/half_written"
    half_written.parent.mkdir(exist_ok=True)
    half_written.touch()
    machine.python("3.10")
    assert machine.run("python", "x").stdout == "ran in k2 with x\n"
    assert not half_written.exists() and not (machine.root / ".venv/tmp").exists()


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_stops_what_it_started_and_says_how_to_go_on(machine, number, status):
    machine.python("3.10")
    machine.pip(f"echo $$ >{machine.folder}/pid; exec sleep 60")
    process = machine.start("true")
    machine.wait_for("-m pip install")
    while not (machine.folder / "pid").exists() or not (machine.folder / "pid").read_text():
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert "interrupted; the same command finishes environment k2" in err
    with pytest.raises(ProcessLookupError):
        os.kill(int((machine.folder / "pid").read_text()), 0)
    machine.pip("")
    assert machine.run("true").returncode == 0


def test_two_at_once_make_one_environment(machine):
    machine.python("3.10")
    machine.pip("sleep 0.3")
    processes = [machine.start("python", str(i)) for i in range(3)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [out for out, _ in outputs] == [f"ran in k2 with {i}\n" for i in range(3)]
    assert len(machine.calls("-m venv")) == 1 and len(machine.calls("-m pip install")) == 3
    assert sorted("waiting for another process" in err for _, err in outputs) == [False, True, True]


def test_an_installation_whose_shell_was_killed_is_waited_for_and_used(machine):
    machine.python("3.10")
    machine.pip("sleep 0.5")
    process = machine.start("true")
    machine.wait_for("-m pip install")
    process.kill()  # the shell alone
    process.communicate()
    second = machine.run("python", "x")
    assert second.stdout == "ran in k2 with x\n" and "waiting" in second.stderr
    assert len(machine.calls("-m venv")) == 1


def test_a_shim_that_does_not_run_is_passed_over(machine):
    machine.script("python3.10", "echo 'pyenv: python3.10: command not found' >&2; exit 127")
    machine.python("3.12", "python3")
    good = machine.python("3.10", "python", folder=machine.folder / "home/.pyenv/versions/3.10.13/bin")
    done = machine.run("python", "x")
    assert done.stdout == "ran in k2 with x\n"
    assert f"making environment k2 from {good}" in done.stderr


def test_named_python_comes_first_and_a_wrong_one_is_mentioned(machine):
    machine.python("3.10")
    mine = machine.python("3.10", "my python", folder=machine.folder / "else where")
    wrong = machine.python("3.9")
    assert f"making environment k2 from {mine}" in machine.run("true", PYTHON=str(mine)).stderr
    shutil.rmtree(machine.root / ".venv")
    done = machine.run("true", PYTHON=str(wrong))
    assert f"PYTHON={wrong} is Python 3.9, not Python 3.10; looking for another" in done.stderr
    assert done.returncode == 0


def test_uv_fetches_python_into_the_repository(machine):
    home = machine.root / ".venv/python/cpython-3.10.19-linux-x86_64-gnu/bin"
    machine.python("3.10", "waiting", folder=machine.folder)
    machine.script(
        "uv",
        f'''echo "$*" >>{machine.calls_file}
        if [ "$1" = python ] && [ "$UV_PYTHON_INSTALL_DIR" = "{home.parents[1]}" ]; then
            mkdir -p "{home}" && cp {machine.folder}/waiting "{home}/python3"
        fi''',
    )
    done = machine.run("python", "x")
    assert done.stdout == "ran in k2 with x\n", done.stderr
    assert "python install 3.10" in machine.calls()
    assert "fetching Python 3.10 into .venv/python" in done.stderr


def test_without_python_310_torch2_takes_its_place_and_it_is_said_every_time(machine):
    machine.python("3.12", "python3")
    machine.script("uv", '[ "$1" = --version ]')
    first = machine.run("python", "x")
    assert first.stdout == "ran in torch2 with x\n"
    reason = "found no Python 3.10, and could not fetch one"
    assert f"no environment k2: {reason}" in first.stderr and "torch2 takes its place" in first.stderr
    assert [line.rsplit("/", 1)[1] for line in machine.calls("-m pip install")] == ["build.txt", "torch2.txt"]
    second = machine.run("python", "x")
    assert second.stdout == first.stdout and second.stderr.count("\n") == 1 and reason in second.stderr
    asked = machine.run("python", "x", PYSPEECH_ENV="k2")
    assert asked.returncode == 1 and reason in asked.stderr and asked.stdout == ""
    machine.python("3.10")
    assert machine.run("python", "x", PYSPEECH_ENV="k2").stdout == "ran in k2 with x\n"
    assert machine.run("python", "x").stdout == "ran in k2 with x\n"


def test_uv_is_installed_where_there_is_only_another_python(machine):
    machine.python("3.12", "python3")
    uv = machine.script("uv", '[ "$1" = --version ]', folder=machine.folder)
    machine.pip(f'case "$*" in *uv.txt*) cp {uv} "{machine.root}/.venv/uv/bin/uv" ;; esac')
    assert machine.run("python", "x").stdout == "ran in torch2 with x\n"
    assert [line.rsplit("/", 1)[1] for line in machine.calls("-m pip")] == ["uv.txt", "build.txt", "torch2.txt"]


@pytest.mark.parametrize("system", ["Darwin arm64", "Linux aarch64"])
def test_other_machines_get_torch2(machine, system):
    machine.script("uname", f"echo {system}")
    machine.python("3.10")
    machine.python("3.13")
    done = machine.run("python", "x")
    assert done.stdout == "ran in torch2 with x\n"
    assert f"k2 is for Linux on x86-64, this is {system}" in done.stderr


def only_line(done):
    """The last line before that with the log's path, where there is one."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("path.sh: log: ")]
    return lines[-1]


def test_no_python_at_all(machine):
    done = machine.run("true", PYSPEECH_ENV="torch2")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "found no Python 3.11 or 3.12 or 3.13 or 3.14" in done.stderr and "install one" in done.stderr
    assert machine.run("true").returncode == 1


def test_python_that_cannot_make_environments_is_named_with_the_package_to_install(machine):
    debian = machine.python("3.11", "python3", state="venv")
    done = machine.run("true", PYSPEECH_ENV="torch2")
    assert done.returncode == 1
    assert f"{debian} cannot make environments" in done.stderr and "apt-get install python3.11-venv" in done.stderr


@pytest.mark.parametrize(
    "said, explained",
    [
        (
            "WARNING: Retrying after connection broken by NewConnectionError: [Errno -3] Temporary failure in name resolution"
            "\nERROR: No matching distribution found for torch===1.13.1",
            "cannot be reached: connect to the network",
        ),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "another file than"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] ...'))", "PIP_CERT"),
        ("ERROR: No matching distribution found for torch===1.13.1", "No matching distribution found for torch===1.13.1"),
    ],
)
def test_failing_pip_is_explained_in_one_line_and_leaves_no_environment(machine, said, explained):
    machine.python("3.10")
    machine.pip(f'cat <<"END"\n{said}\nEND\nexit 1')
    done = machine.run("true")
    assert done.returncode == 1
    assert explained in only_line(done) and "run the same command again" in only_line(done)
    assert done.stderr.endswith(f"path.sh: log: {machine.root}/.venv/k2.log\n")
    assert said in (machine.root / ".venv/k2.log").read_text()
    machine.pip("")
    assert machine.run("python", "x").stdout == "ran in k2 with x\n"


def test_packages_that_do_not_load_do_not_count_as_complete(machine):
    machine.python("3.10")
    (machine.folder / "broken").write_text("k2 does not load: ImportError: x")
    done = machine.run("true")
    assert done.returncode == 1 and "k2 does not load: ImportError: x" in only_line(done)
    (machine.folder / "broken").unlink()
    assert machine.run("true").returncode == 0


def test_full_disk_is_noticed_before_the_download(machine):
    machine.python("3.10")
    machine.script("df", "echo header; echo x 9 9 1500000 1% /")
    done = machine.run("true")
    assert done.returncode == 1 and "1 GB are free" in only_line(done)
    assert not machine.calls("-m venv")


def test_unknown_environment(machine):
    done = machine.run("true", PYSPEECH_ENV="torch3")
    assert done.returncode == 1
    assert done.stderr == "path.sh: PYSPEECH_ENV=torch3: no such environment; there are k2, torch2 and system\n"


def test_system_is_the_python_on_path_and_nothing_is_made(machine):
    machine.python("3.8", "python")
    assert machine.run("python", "x", PYSPEECH_ENV="system").stdout == "ran in system with x\n"
    assert not (machine.root / ".venv").exists()


def test_threads_that_wait_sleep_unless_told_otherwise(machine):
    show = ("bash", "-c", 'echo "$OMP_WAIT_POLICY"')
    assert machine.run(*show, PYSPEECH_ENV="system").stdout == "PASSIVE\n"
    assert machine.run(*show, PYSPEECH_ENV="system", OMP_WAIT_POLICY="ACTIVE").stdout == "ACTIVE\n"


def test_matrix_products_of_mkl_use_avx2_on_amd(machine):
    processor = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    expected = "5" if "AuthenticAMD" in processor and " avx2 " in processor else ""
    show = ("bash", "-c", 'echo "${MKL_DEBUG_CPU_TYPE:-}"')
    assert machine.run(*show, PYSPEECH_ENV="system").stdout == expected + "\n"
    assert machine.run(*show, PYSPEECH_ENV="system", MKL_DEBUG_CPU_TYPE="4").stdout == "4\n"


def test_free_memory_is_kept_unless_told_otherwise(machine):
    show = ("bash", "-c", 'echo "$MALLOC_MMAP_MAX_ $MALLOC_TRIM_THRESHOLD_"')
    assert machine.run(*show, PYSPEECH_ENV="system").stdout == f"0 {2**32}\n"
    assert machine.run(*show, PYSPEECH_ENV="system", MALLOC_MMAP_MAX_="9", MALLOC_TRIM_THRESHOLD_="1").stdout == "9 1\n"


IN_TURN = "-n auto --dist loadfile --no-loadscope-reorder"


def test_pytest_without_a_path_runs_all_tests_from_any_folder(machine):
    machine.python("3.10")
    machine.run("true")
    (machine.root / "tests").mkdir()
    (machine.root / "tests/test_x.py").touch()
    assert machine.run("pytest", "-q", cwd="/").stdout == f"ran in k2 with {IN_TURN} -q {machine.root}/tests\n"
    named = machine.run("pytest", "tests/test_x.py::test_y", cwd=machine.root)
    assert named.stdout == "ran in k2 with tests/test_x.py::test_y\n"


@SHELLS
def test_sourcing(machine, shell):
    root, show = machine.root, 'echo "$?|$PYSPEECH_ENV|$PYTHONPATH|$PATH|$(type -p python || echo none)"'
    before = machine.bash(f'cd /; source "{root}/path.sh"; {show}', shell)
    assert before.stdout.startswith(f"1|||{machine.bin}|")
    assert f"run {root}/path.sh, then source again" in before.stderr
    machine.python("3.10")
    machine.python("3.12")
    machine.run("true")
    machine.run("true", PYSPEECH_ENV="torch2")
    source = f'source "{root}/path.sh"'
    left = 'set | grep -c "^_pyspeech" || true'
    after = machine.bash(f"set -eu; cd /; {source}; {source}; {show}; python x; {left}", shell)
    assert after.stderr == ""
    first, second, left = after.stdout.splitlines()
    assert first.startswith(f"0|k2|{root}|{root}/.venv/k2/bin:{machine.bin}|")
    assert (second, left) == ("ran in k2 with x", "0")
    changed = machine.bash(f'{source}; PYSPEECH_ENV=torch2; {source}; python x; echo "$PATH"', shell)
    assert changed.stdout == f"ran in torch2 with x\n{root}/.venv/torch2/bin:{machine.bin}\n"
    relative = machine.bash('cd "re po"; source ./path.sh; python x', shell)
    assert relative.stdout == "ran in k2 with x\n"


@SHELLS
def test_the_last_sourced_copy_of_the_repository_comes_first(machine, shell):
    machine.python("3.10")
    machine.run("true")
    first = machine.root
    second = machine.root = machine.folder / "second"
    (second / "requirements").mkdir(parents=True)
    shutil.copy(REPOSITORY / "path.sh", second)
    for path in (first / "requirements").iterdir():
        shutil.copy(path, second / "requirements")
    machine.run("true")
    show = 'echo "$PYTHONPATH|$VIRTUAL_ENV|$PATH"'
    sources = {root: f'source "{root}/path.sh"' for root in (first, second)}
    done = machine.bash(f"{sources[first]}; {sources[second]}; {sources[first]}; {show}", shell, PYTHONPATH="/other")
    assert done.stdout.startswith(f"{first}:{second}:/other|{first}/.venv/k2|{first}/.venv/k2/bin:")
    done = machine.bash(f"{sources[first]}; {sources[second]}; '{first}/path.sh' bash -c '{show}'", shell)
    assert done.stdout.startswith(f"{first}:{second}|{first}/.venv/k2|{first}/.venv/k2/bin:")
    done = machine.bash(f"{sources[second]}; {sources[second]}; {show}", shell, PYTHONPATH="")
    assert done.stdout.startswith(f"{second}|")


@SHELLS
def test_environment_named_before_source(machine, shell):
    machine.python("3.10")
    machine.python("3.12")
    for name in ("k2", "torch2"):
        machine.run("true", PYSPEECH_ENV=name)
    source = f'source "{machine.root}/path.sh"'
    show = 'bash -c "echo \\$PYSPEECH_ENV \\$VIRTUAL_ENV"'
    for before in ("true", source) if shell == "bash" else ():  # zsh drops it: pyspeech.launch does it
        done = machine.bash(f"{before}; PYSPEECH_ENV=torch2 {source}; {show}", shell)
        assert done.stdout == f"torch2 {machine.root}/.venv/torch2\n"
    done = machine.bash(f'{source}; PYSPEECH_ENV=system {source}; echo "$PATH"; {show}', shell)
    assert done.stdout == f"{machine.bin}\n{'system' if shell == 'bash' else 'k2'}\n"


def test_links_to_path_sh_are_followed(machine):
    machine.python("3.10")
    machine.run("true")
    links = machine.folder / "far/links"
    links.mkdir(parents=True)
    (links / "absolute").symlink_to(machine.root / "path.sh")
    (links / "relative").symlink_to("../../re po/path.sh")
    (links / "twice").symlink_to("relative")
    (machine.folder / "by").symlink_to("far/links")
    for name in ("far/links/absolute", "far/links/relative", "far/links/twice", "by/relative"):
        assert machine.bash(f"{name} python x").stdout == "ran in k2 with x\n", name
        assert machine.bash(f'source {name}; echo "$PYSPEECH_ROOT"').stdout == f"{machine.root}\n", name
    assert machine.bash("cd by; source relative; python x", PATH=f"{machine.bin}").stdout == "ran in k2 with x\n"
    assert not (links / ".venv").exists()


def test_real_python_makes_a_real_environment(machine):
    """venv and pip themselves, on requirement files that are empty; this Python's version decides which environment."""
    name = "k2" if sys.version_info[:2] == (3, 10) else "torch2"
    (machine.root / "pyspeech").mkdir()
    (machine.root / "pyspeech/compat.py").write_text("import sys; print(sys.prefix)\n")
    done = machine.run(PYSPEECH_ENV=name, PYTHON=sys.executable, PIP_USER="1")
    assert done.returncode == 0, done.stderr + (machine.root / f".venv/{name}.log").read_text()
    assert done.stdout == f"{machine.root}/.venv/{name}\n"


@pytest.fixture
def integration(machine):
    """A machine with the scripts of .ci, and both environments made."""
    machine.python("3.10")
    machine.python("3.12")
    (machine.root / "requirements/check.txt").write_text("# check\n")
    for name in ("run", "check"):
        machine.script(name, (REPOSITORY / ".ci" / name).read_text(), folder=machine.root / ".ci")
    for name in ("k2", "torch2"):
        machine.run("true", PYSPEECH_ENV=name)
    return machine


CHECKS = ["-m ruff check .", "-m ruff format --check .", "-m pyright", "-m mkdocs build --strict --quiet"]


@pytest.mark.parametrize("broken", [None, "k2", "torch2"])
def test_ci_runs_the_tests_of_both_environments_and_fails_where_one_fails(integration, broken):
    if broken:
        integration.script("pytest", "echo failed; exit 1", folder=integration.root / ".venv" / broken / "bin")
    done = integration.bash('bash "re po/.ci/run"')
    good = [name for name in ("k2", "torch2") if name != broken]
    ran = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("ran in") and "tests" in line]
    assert ran == good
    assert done.returncode == (1 if broken else 0)
    assert done.stdout.count("tests took") == 2
    assert (f"failed: tests in {broken}" in done.stdout) == bool(broken)


def test_ci_checks_style_and_types_before_the_tests(integration):
    done = integration.bash('bash "re po/.ci/run"')
    ran = [line.split(" with ")[1] for line in done.stdout.splitlines() if line.startswith("ran in")]
    assert ran == [*CHECKS, *[f"{IN_TURN} --durations=10 {integration.root}/tests"] * 2]
    assert integration.calls("-m pip install --quiet") == ["-m pip install --quiet -r requirements/check.txt"]
    integration.bash('bash "re po/.ci/check"')
    assert len(integration.calls("-m pip install --quiet")) == 1
    (integration.root / "requirements/check.txt").write_text("# another\n")
    integration.bash('bash "re po/.ci/check"')
    assert len(integration.calls("-m pip install --quiet")) == 2


@pytest.mark.parametrize("broken", CHECKS)
def test_ci_fails_where_a_check_fails_and_runs_all_others(integration, broken):
    fake = integration.bin / "python3.12"
    for path in (fake, integration.root / ".venv/torch2/bin/python"):
        text = path.read_text().replace('case "$*" in', f'case "$*" in "{broken}") exit 1 ;; esac\ncase "$*" in', 1)
        integration.script(path.name, text, folder=path.parent)
    done = integration.bash('bash "re po/.ci/run"')
    ran = [line.split(" with ")[1] for line in done.stdout.splitlines() if line.startswith("ran in")]
    assert ran == [*(check for check in CHECKS if check != broken), *[f"{IN_TURN} --durations=10 {integration.root}/tests"] * 2]
    assert done.returncode == 1 and "failed: style and types" in done.stdout


def test_versions_of_the_checks_agree():
    pinned = re.findall(r"^ruff==\S+", (REPOSITORY / "requirements/check.txt").read_text(), re.MULTILINE)
    assert len(pinned) == 1
    assert re.findall(r"ruff==[^\]\s]+", (REPOSITORY / ".pre-commit-config.yaml").read_text()) == pinned * 2


# ---- pyspeech.launch ----

SCRIPT = """#!/usr/bin/env python3
import sys
sys.path.insert(0, {root!r})
from pyspeech.launch import ensure_environment
ensure_environment()
import os
print(sys.argv[1:], os.getcwd(), os.environ["PYSPEECH_ENV"])
"""


@pytest.fixture
def launching(machine):
    """A machine whose path.sh is replaced by one line of bash, and a script that starts through it."""
    (machine.root / "pyspeech").mkdir()
    for name in ("__init__.py", "launch.py"):
        shutil.copy(REPOSITORY / "pyspeech" / name, machine.root / "pyspeech")
    (machine.folder / "script.py").write_text(SCRIPT.format(root=str(machine.root)))

    def launch(path_sh, *arguments, **env):
        (machine.root / "path.sh").write_text(path_sh)
        return subprocess.run(
            [sys.executable, "-B", "script.py", *arguments],
            env={**machine.env, **env},
            text=True,
            cwd=machine.folder,
            capture_output=True,
            timeout=60,
        )

    return launch


def test_launch_runs_the_script_again_through_path_sh(launching, machine):
    done = launching('echo "$PWD"; printf "<%s>" "$@"; exit 3', "--stage", "two words", "")
    assert done.stdout == f"{machine.folder}\n<python><script.py><--stage><two words><>"
    assert done.returncode == 3


def test_launch_with_streams_that_are_closed(launching, machine):
    launching("")
    (machine.root / "path.sh").write_text(f'echo "$@" > "{machine.folder}/called"')
    done = subprocess.run(
        ["bash", "-c", '"$0" -B script.py x >&- 2>&-', sys.executable], env=machine.env, cwd=machine.folder, timeout=60
    )
    assert done.returncode == 0 and (machine.folder / "called").read_text() == "python script.py x\n"


def test_launch_is_content_with_the_users_own_python(launching, machine):
    done = launching("echo called", "x", PYSPEECH_ENV="system")
    assert done.stdout == f"['x'] {machine.folder} system\n"


def test_launch_goes_on_inside_the_environment(launching, machine):
    environment = machine.root / ".venv"
    environment.mkdir()
    (environment / "mine").symlink_to(sys.prefix)
    done = launching("echo called", "x", PYSPEECH_ENV="mine", PYSPEECH_ROOT=str(machine.root))
    assert done.stdout == f"['x'] {machine.folder} mine\n"
    other = launching("echo called", "x", PYSPEECH_ENV="mine", PYSPEECH_ROOT="/elsewhere")
    assert other.stdout == "called\n"


def test_launch_knows_the_environment_of_a_python_where_none_is_named(launching, machine):
    (machine.root / ".venv").mkdir()
    (machine.root / ".venv/torch2").symlink_to(sys.prefix)
    done = launching("echo called", "x", PYSPEECH_ROOT=str(machine.root))
    assert done.stdout == f"['x'] {machine.folder} torch2\n"
    assert launching('echo "$PYSPEECH_ENV"').stdout == "torch2\n"
    assert launching('echo "$PYSPEECH_ENV"', PYSPEECH_ENV="k2", PYSPEECH_ROOT=str(machine.root)).stdout == "k2\n"


def test_launch_does_not_loop(launching):
    done = launching(f'shift; exec "{sys.executable}" -B "$@"')
    assert done.returncode == 1
    assert "is not the Python of its environment" in done.stderr and done.stderr.count("\n") == 1


def test_launch_is_valid_for_old_pythons():
    for name in ("launch.py", "__init__.py"):
        assert ast.parse((REPOSITORY / "pyspeech" / name).read_text(), feature_version=(3, 6)).body
