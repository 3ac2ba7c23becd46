"""A private Slurm of this machine for the tests: several virtual nodes, no accounting, everything below one folder.

It needs Debian's packages slurmctld, slurmd, slurm-client and munge, and root. Its daemons listen on the loopback alone.
Slurm's manual describes the settings (slurm.conf); a virtual node is a slurmd of its own with a port of its own.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from pyspeech.engine.job import prefix_of
from pyspeech.engine.locks import birth_of

SBIN = ":/usr/sbin:/sbin"  # of Debian, where daemons are
DAEMONS = ("slurmctld", "slurmd", "munged", "sbatch")
CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=3
SlurmctldTimeout=10
KillWait=10
MinJobAge=300
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
OverTimeLimit=0
SlurmdParameters=config_overrides
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""


def missing():
    """What keeps the tests from a Slurm of their own, or ""."""
    path = os.environ["PATH"] + SBIN
    if os.geteuid() == 0 and all(shutil.which(name, path=path) for name in DAEMONS):
        return ""
    return "needs root, and Slurm: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"


@contextlib.contextmanager
def private_slurm():
    """A running Slurm, which this process and what it starts talk to."""
    with tempfile.TemporaryDirectory(prefix="slurm") as folder:  # short: paths of sockets are at most 107 bytes
        slurm = Slurm(Path(folder) / "s")
        before = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
        os.environ.update(slurm.environment)
        try:
            with slurm:
                yield slurm
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


class Slurm:
    """A running Slurm. folder: a short path of its own; nodes: n1, n2, ... with so many CPUs, and MB of memory, each."""

    def __init__(self, folder, nodes=3, cpus=2, memory=16000):
        self.folder, self.nodes = Path(folder), [f"n{index + 1}" for index in range(nodes)]
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ["PATH"] + SBIN}
        ports = _free_ports(nodes + 1)
        claims = f"NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}"
        lines = [f"NodeName={name} Port={port} {claims}" for name, port in zip(self.nodes, ports[1:], strict=False)]
        for name in ("munge", "state", *(f"spool-{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        text = CONFIGURATION.format(host=socket.gethostname(), port=ports[0], folder=self.folder)
        head, partitions = text.split("PartitionName", 1)
        (self.folder / "slurm.conf").write_text(head + "\n".join(lines) + "\nPartitionName" + partitions)

    def __enter__(self):
        munge = self.folder / "munge"
        munge.chmod(0o700)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self.call("munged", "--force", *(f"--{flag}={munge / name}" for flag, name in files.items()))
        self.call("slurmctld", "-c")
        for node in self.nodes:
            self.start_node(node)
        self.wait_for(lambda: self.call("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D").strip() == str(len(self.nodes)))
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(AssertionError):
            self.call("scancel", "--user=root")
            self.wait_for(lambda: not self.call("squeue", "-h"), seconds=20)
        for pid_file in [*self.folder.glob("slurmd-*.pid"), self.folder / "slurmctld.pid", self.folder / "munge" / "pid"]:
            _end(pid_file)

    def call(self, *command):
        """What a command of Slurm's prints; it has to end well."""
        done = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def wait_for(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "Slurm: " + self.call("squeue") + self.call("sinfo", "-R")
            time.sleep(0.1)

    def start_node(self, node):
        self.call("slurmd", "-N", node)

    def lose_node(self, node):
        """Its slurmd dies; what it had started goes on, as where the network fails."""
        _end(self.folder / f"slurmd-{node}.pid")

    def jobs(self, folder):
        """{stage: (id, state, node)} of the jobs of an experiment folder that wait or run."""
        lines = [line.split("|") for line in self.call("squeue", "-h", "-o", "%j|%i|%t|%N").splitlines()]
        prefix = prefix_of(folder)
        return {name[len(prefix) :]: tuple(rest) for name, *rest in lines if name.startswith(prefix)}


def _end(pid_file):
    """End the daemon of a pid file, and wait for that."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while birth_of(pid) and time.monotonic() < deadline:  # a zombie is as good as gone
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
