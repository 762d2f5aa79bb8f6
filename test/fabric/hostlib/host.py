# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""One host: its first process, which sets it up and starts what is asked for.

It is asked in two ways: by the process that made it, over a socket pair, and by `rsh` on the other
hosts, over the network, as a remote shell daemon would be.
"""

import json
import os
import resource
import selectors
import signal
import socket
import time
import uuid

from hostlib import linux

SUBNET = "10.99.0"
PORT = 514
OWN_DIR = "/tmp/.hosts"
HOSTFILE = OWN_DIR + "/hostfile"
CARRIER_TIMEOUT = 120
LEFTOVER_TIMEOUT = 15
# Where it is put back once this host shares nothing with the others.
RSH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rsh")


def name_of(index):
    return "host%d" % index


def address_of(index):
    return "%s.%d" % (SUBNET, index)


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


# ---- files ---------------------------------------------------------------------------------------

def own_tmp(cwd):
    """A /tmp that shows what was there and keeps what is written; returns where it keeps it.

    Programs under test often lie there themselves. The working directory stays the real one.
    """
    before = os.open("/tmp", os.O_PATH)
    here = os.open(cwd, os.O_PATH)
    linux.mount("tmpfs", "/tmp", "tmpfs", data="mode=1777")
    kept = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)
    for name in ("upper", "work"):
        os.mkdir("/tmp/" + name)
        os.chmod("/tmp/" + name, 0o1777)
    fd = "/proc/self/fd/%d"
    linux.mount("overlay", "/tmp", "overlay", data="lowerdir=%s,upperdir=%s/upper,workdir=%s/work"
                % (fd % before, fd % kept, fd % kept))
    if (cwd + "/").startswith("/tmp/") and cwd != "/tmp":
        linux.bind(fd % here, cwd)
    os.close(before)
    os.close(here)
    return kept


def own_files(index, options, cwd):
    """Mounts; the order matters, as the later ones use the earlier ones."""
    linux.mount("proc", "/proc", "proc")
    linux.mount("sysfs", "/sys", "sysfs")
    if options.no_topology:
        linux.mount("tmpfs", "/sys/devices/system", "tmpfs")
    linux.mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777,size=" + options.shm_size)
    kept = own_tmp(cwd)
    os.mkdir(OWN_DIR)
    everyone = range(1, options.hosts + 1)
    write(HOSTFILE, "".join("%s slots=%d\n" % (name_of(i), options.ranks_per_host)
                            for i in everyone))
    write(OWN_DIR + "/names", "127.0.0.1 localhost\n" + "".join(
        "%s %s\n" % (address_of(i), name_of(i)) for i in everyone))
    linux.bind(OWN_DIR + "/names", "/etc/hosts")
    write(OWN_DIR + "/boot_id", "%s\n" % uuid.uuid4())
    linux.bind(OWN_DIR + "/boot_id", "/proc/sys/kernel/random/boot_id")
    for host, source, target in options.bind:
        if host in (0, index):
            linux.bind(source, target)
    # Mounts hide the directory that we were in.
    os.chdir(cwd)
    return kept


# ---- network -------------------------------------------------------------------------------------

def own_network(index, options):
    linux.tool("ip", "link", "set", "lo", "up")
    linux.tool("ip", "addr", "add", address_of(index) + "/24", "dev", "eth0")
    linux.tool("ip", "link", "set", "eth0", "up")
    if options.rate:
        linux.tool("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", options.rate,
                   "burst", "128kb", "latency", "50ms")
    # UCX takes no interface without a carrier, and the kernel may be a second late to see it.
    end = time.monotonic() + CARRIER_TIMEOUT
    while not linux.is_running("eth0"):
        if time.monotonic() > end:
            raise linux.Failure("the network device of %s gets no carrier" % name_of(index))
        time.sleep(0.005)


def counters():
    """What came and went."""
    stats = json.loads(linux.tool("ip", "-s", "-j", "link", "show", "eth0"))[0]["stats64"]
    return {"received": stats["rx"], "sent": stats["tx"]}


# ---- what is left --------------------------------------------------------------------------------

def files_below(top, shown_as):
    for directory, _, files in os.walk(top):
        for name in files:
            path = os.path.join(directory, name)
            shown = os.path.join(shown_as, os.path.relpath(path, top))
            if not shown.startswith(OWN_DIR + "/"):
                yield shown


def system_v_segments():
    with open("/proc/sysvipc/shm", encoding="ascii") as f:
        for line in f.read().splitlines()[1:]:
            words = line.split()
            yield "System V segment %s of %s bytes" % (words[1], words[3])


def process_ids():
    return {pid for pid in os.listdir("/proc") if pid.isdigit()}


def processes(before):
    """Those that were not there before."""
    for pid in sorted(process_ids() - before):
        if int(pid) != os.getpid():
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words != [b""]:
                yield "process %s: %s" % (pid, b" ".join(words).decode(errors="replace").strip())


def leftovers(kept, before, reap_children):
    """The job has ended; its daemons get a moment more. `before`: processes that were there when it
    began."""
    end = time.monotonic() + LEFTOVER_TIMEOUT
    while any(True for _ in processes(before)) and time.monotonic() < end:
        time.sleep(0.02)
        reap_children()
    return (sorted(files_below("/dev/shm", "/dev/shm")) +
            sorted(files_below("/proc/self/fd/%d/upper" % kept, "/tmp")) +
            list(system_v_segments()) + list(processes(before)))


def reap():
    """The exit codes of processes that have ended, by process id."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


# ---- the host ------------------------------------------------------------------------------------

class Session:
    """A command of `rsh`: a connection for it and its exit code, another for its output."""

    def __init__(self):
        self.control = self.output = self.command = self.user = None

    def complete(self):
        return self.control is not None and self.output is not None


class Host:
    def __init__(self, index, options, control, cwd):
        self.index = index
        self.options = options
        self.control = control
        self.selector = selectors.DefaultSelector()
        self.sessions = {}
        self.running = {}
        self.main = None
        self.before = set()
        self.kept = own_files(index, options, cwd)
        self.env = self.environment()

    def environment(self):
        """What a login on this host would get, and what Open MPI must know to use the others."""
        mca = {"plm_rsh_agent": RSH, "orte_default_hostfile": HOSTFILE,
               # Each host takes all processors for its own.
               "hwloc_base_binding_policy": "none"}
        if self.options.hosts * self.options.ranks_per_host > len(os.sched_getaffinity(0)):
            mca["mpi_yield_when_idle"] = "1"
        env = {"OMPI_MCA_" + k: v for k, v in mca.items()}
        env.update({"PRTE_MCA_plm_ssh_agent": RSH, "PRTE_MCA_prte_default_hostfile": HOSTFILE,
                    "PRTE_MCA_hwloc_default_binding_policy": "none",
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        env.update(os.environ)
        env.pop("TMPDIR", None)
        if self.options.no_topology:
            # Without /sys it would ask the processor.
            env["HWLOC_COMPONENTS"] = "-x86"
        for host, name, value in self.options.env:
            if host in (0, self.index):
                env[name] = value
        return env

    def say(self, **message):
        self.control.send(json.dumps(message).encode())

    def start(self, argv, output=None, user=None):
        """Not by subprocess, which would reap children that it knows whenever it likes."""
        pid = os.fork()
        if pid != 0:
            return pid
        try:
            os.setsid()
            if output is not None:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            for s in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(s, signal.SIG_DFL)
            if user is not None and user[0] != 0:
                os.setgroups([])
                os.setgid(user[1])
                os.setuid(user[0])
            os.execvpe(argv[0], argv, self.env)
        except OSError as e:
            os.write(2, ("hosts: %s: %s\n" % (argv[0], e)).encode())
        finally:
            os._exit(127)

    def set_up(self):
        """Runs the commands of --setup."""
        for index, command in self.options.setup:
            if index in (0, self.index):
                done = os.waitstatus_to_exitcode(os.waitpid(
                    self.start(["/bin/sh", "-c", command]), 0)[1])
                if done != 0:
                    raise linux.Failure("%s: exit status %d" % (command, done))
        self.before = process_ids()

    def run_main(self, argv):
        self.main = self.start(argv)
        self.say(started=self.main)

    # -- requests of the process that made this host

    def request(self):
        message = self.control.recv(1 << 16)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if "run" in request:
            self.run_main(request["run"])
        elif "do" in request:
            self.start(["/bin/sh", "-c", request["do"]])
        elif "signal" in request and self.main is not None:
            os.kill(self.main, request["signal"])
        elif "report" in request:
            self.say(report={
                "left": leftovers(self.kept, self.before, self.children) if self.options.leaks else [],
                "counters": counters() if self.options.counters else {}})

    # -- requests of rsh

    def accept(self, listener):
        connection, _ = listener.accept()
        buffer = bytearray()
        self.selector.register(connection, selectors.EVENT_READ,
                               lambda: self.first_line(connection, buffer))

    def first_line(self, connection, buffer):
        try:
            data = connection.recv(1 << 16)
        except OSError:
            data = b""
        buffer.extend(data)
        if data and not buffer.endswith(b"\n"):
            return
        self.selector.unregister(connection)
        if not data:
            connection.close()
            return
        request = json.loads(buffer)
        session = self.sessions.setdefault(request["id"], Session())
        if "command" in request:
            session.command, session.control = request["command"], connection
            session.user = request["user"]
        else:
            session.output = connection
        if session.complete():
            del self.sessions[request["id"]]
            self.run_session(session)

    def run_session(self, session):
        pid = self.start(["/bin/sh", "-c", session.command], session.output, session.user)
        session.output.close()
        self.running[pid] = session.control

    # --

    def woken(self, socket_of_signals):
        socket_of_signals.recv(4096)
        self.children()

    def children(self):
        for pid, code in reap().items():
            if pid == self.main:
                self.main = None
                self.say(exit=code)
            elif pid in self.running:
                with self.running.pop(pid) as connection:
                    try:
                        connection.send(b"%d\n" % code)
                    except OSError:
                        pass  # mpirun has not waited for it

    def serve(self):
        woken, wakeup = socket.socketpair()
        wakeup.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup.fileno())
        listener = socket.create_server(("", PORT), backlog=64)
        self.selector.register(woken, selectors.EVENT_READ, lambda: self.woken(woken))
        self.selector.register(listener, selectors.EVENT_READ, lambda: self.accept(listener))
        self.selector.register(self.control, selectors.EVENT_READ, self.request)
        self.say(ready=True)
        while True:
            for key, _ in self.selector.select():
                key.data()


def main(index, options, control, cwd):
    """The life of a host's first process; it ends with its maker."""
    try:
        linux.die_with_parent(None)
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_DFL)
        socket.sethostname(name_of(index))
        host = Host(index, options, control, cwd)
        # Now the cable may be plugged in.
        host.say(files=True)
        control.recv(16)
        own_network(index, options)
        if options.memlock is not None:
            linux.limit_locked_memory(options.memlock)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if options.deny_cma:
            linux.deny_single_copy()
        host.set_up()
        host.serve()
    except Exception as e:  # whatever it is, it must be told pylint: disable=broad-except
        kind = "" if isinstance(e, (OSError, linux.Failure)) else type(e).__name__ + ": "
        control.send(json.dumps({"error": "%s: %s%s" % (name_of(index), kind, e)}).encode())
    finally:
        os._exit(1)
