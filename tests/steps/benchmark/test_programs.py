"""Programs that benchmarks run: their lines, their end, the memory of all that they start."""

import os
import signal
import sys
import time

import pytest

from pyspeech.engine.locks import birth_of
from steps.benchmark.programs import run_program


def python(code):
    return [sys.executable, "-c", code]


def test_lines_and_status():
    done = run_program(python("import sys; print('é'); print('two', file=sys.stderr); sys.exit(3)"))
    assert (done.status, done.stopped) == (3, False) and sorted(done.lines) == ["two", "é"] and done.seconds > 0


def test_computing_of_what_it_has_waited_for():
    code = "import os, time; pid = os.fork()\nwhile time.process_time() < (0.2 if pid else 0.5): pass\nif pid: os.wait()"
    done = run_program(python(code))
    assert 0.7 <= done.cpu_seconds < 2.0 and done.cpu_seconds < 3 * done.seconds


def test_killed_at_a_line_with_all_that_it_started():
    code = "import os, time; os.fork(); os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)"
    seen = []
    done = run_program(python(code), stop=lambda line: seen.append(line) or len(seen) == 2)
    assert done.stopped and done.status == -9 and done.seconds < 50
    pids = set(map(int, done.lines))
    assert len(pids) == 2
    while any(map(birth_of, pids)):
        time.sleep(0.01)


def test_killed_when_its_time_is_up():
    done = run_program(python("import time; print('begun', flush=True); time.sleep(60)"), limit=0.5)
    assert (done.status, done.stopped) == (-9, False) and done.seconds < 50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_with_what_runs_it(number):
    def interrupt(line):
        os.kill(os.getpid(), number)
        time.sleep(10)

    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    seen = []
    with pytest.raises(KeyboardInterrupt):
        run_program(python(code), stop=lambda line: seen.append(int(line)) or interrupt(line))
    assert not birth_of(seen[0])


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="the system does not tell memory")
def test_memory_of_all_processes_what_they_share_once():
    code = (
        "import os, time; own = bytearray(100 << 20); own[::4096] = b'x' * len(own[::4096])\n"
        "pid = os.fork(); more = bytearray((20 if pid else 50) << 20); more[::4096] = b'x' * len(more[::4096]); time.sleep(2)"
    )
    done = run_program(python(code))
    assert 170 <= done.gigabytes * 1024 <= 230
