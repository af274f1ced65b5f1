"""A real Slurm on this machine alone: munged, slurmctld and three nodes, each a slurmd of its own.

It needs no rights and starts in about a second. Nothing of it is installed or kept: everything is in one folder. A node
has two processors and its partition shares it, so that only a job's own options keep others away.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
NODES = ("n1", "n2", "n3")

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdTimeout=5
KillWait=2
ReturnToService=2
JobRequeue=1
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=bench Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs():
    """Daemons are where users do not look, so PATH is not enough."""
    return [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]


class Cluster:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # short: a socket's path has at most 107 letters
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _path()}
        self._daemons = {}

    def start(self):
        ports = _free_ports(1 + len(NODES))
        host = socket.gethostname()
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN"
            for node, port in zip(NODES, ports[1:], strict=True)
        )
        text = CONFIGURATION.format(
            host=host, control_port=ports[0], user=getpass.getuser(), folder=self.folder, nodes=nodes
        )
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge.{name}" for option, name in files.items()]
        self._start("munged", "--foreground", "--force", *options)
        _wait_until((self.folder / "munge.socket").exists)
        self._start("slurmctld", "-D", "-i")
        for node in NODES:
            self.start_node(node)
        _wait_until(lambda: self.states() == dict.fromkeys(NODES, "idle"))

    def start_node(self, node):
        self._start("slurmd", "-D", "-N", node, name=node)

    def kill_node(self, node):
        """As if its power were cut: its daemon, and everything that its jobs have started."""
        self._daemons[node].kill()
        self._daemons.pop(node).wait()
        for process in self.processes_on(node):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def cut_off(self, node):
        """As if its network were cut: it is thought lost, but its jobs go on."""
        self._daemons[node].send_signal(signal.SIGSTOP)

    def processes_on(self, node):
        """All processes of jobs on a node, and the daemons that supervise them."""
        mark = f"SLURMD_NODENAME={node}".encode()
        conf = f"SLURM_CONF={self.variables['SLURM_CONF']}".encode()
        found = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                words = (entry / "environ").read_bytes().split(b"\0")
                if mark in words and conf in words:
                    found.add(int(entry.name))
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if "slurmstepd" in Path(f"/proc/{parent}/comm").read_text():
                        found.add(parent)
        return found

    def states(self):
        answer = self.call("sinfo", "--noheader", "--Node", "--format=%N %t")
        return dict(line.split() for line in answer.splitlines())

    def queue(self):
        return self.call("squeue", "--noheader", "--array", "--format=%i %K %T %N").splitlines()

    def call(self, *words):
        answer = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **self.variables})
        return answer.stdout

    def reset(self):
        """No jobs, and all nodes up: the next test begins."""
        self.call("scancel", "--state=PENDING", f"--user={getpass.getuser()}")
        self.call("scancel", f"--user={getpass.getuser()}")
        for node in NODES:
            if node in self._daemons:
                self._daemons[node].send_signal(signal.SIGCONT)
            else:
                self.start_node(node)
        _wait_until(lambda: not self.queue() and self.states() == dict.fromkeys(NODES, "idle"))

    def stop(self):
        for node in NODES:
            for process in self.processes_on(node):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        for daemon in reversed(self._daemons.values()):  # munged last: the others need it to end
            daemon.send_signal(signal.SIGCONT)
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *words, name=""):
        with (self.folder / f"{name or words[0]}.out").open("ab") as output:
            self._daemons[name or words[0]] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **self.variables}
            )


def _path():
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/sbin"))


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "Slurm did not answer as expected"
        time.sleep(0.1)
