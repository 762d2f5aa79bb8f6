# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""The first process of a fabric: makes the bridge and the hosts, runs the job, causes the faults.

Everything is made inside namespaces that only this process and its descendants are in, as the
first process of a PID namespace. When it ends, however it ends, the kernel kills the descendants,
and with the last of them go the namespaces with their bridges, devices, rules and mounts. So
nothing needs a name that is unique on the machine, and nothing has to be cleaned up.
"""

import json
import os
import re
import selectors
import signal
import socket
import sys
import time

from hostlib import host, late, linux, options as opt

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
START_POLL = 0.02
GRACE = 5
START_TIMEOUT = 300


def complain(text):
    print("hosts: " + text, file=sys.stderr, flush=True)


# ---- processes of the job ------------------------------------------------------------------------

def environ(pid, name):
    """The value of a variable in the environment that a process was started with."""
    try:
        with open("/proc/%s/environ" % pid, "rb") as f:
            m = re.search(rb"(?:^|\0)%s=([^\0]*)" % name, f.read())
    except OSError:
        return None
    return m.group(1) if m else None


def parent_of(pid):
    try:
        with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[1]
    except OSError:
        return "0"


def find_ranks():
    """Process ids by rank: those that Open MPI's daemons started, not their children."""
    variable = b"OMPI_COMM_WORLD_RANK"
    found = {}
    for pid in os.listdir("/proc"):
        rank = environ(pid, variable) if pid.isdigit() else None
        if rank is not None and environ(parent_of(pid), variable) is None:
            found[int(rank)] = int(pid)
    return found


# ---- hosts ---------------------------------------------------------------------------------------

class Link:
    """What the supervisor knows of a host."""

    def __init__(self, index, control):
        self.index = index
        self.control = control
        self.name = host.name_of(index)
        self.port = "port%d" % index

    def tell(self, **message):
        self.control.send(json.dumps(message).encode())

    def hear(self):
        message = self.control.recv(1 << 20)
        if not message:
            raise linux.Failure("%s is gone" % self.name)
        answer = json.loads(message)
        if "error" in answer:
            raise linux.Failure(answer["error"])
        return answer


def fork_host(index, options, cwd):
    """A host's first process is the child of one that only makes the namespaces. Returns the Link
    and a process id in the host's network namespace."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid != 0:
        theirs.close()
        return Link(index, ours), pid
    ours.close()
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC |
                  linux.CLONE_NEWPID | linux.CLONE_NEWNET)
    pid = os.fork()
    if pid == 0:
        host.main(index, options, theirs, cwd)
    theirs.close()
    os.waitpid(pid, 0)
    os._exit(0)


def fault_rules(ports, options):
    """Packets that are lost or late. Not in the hosts: programs of XDP and TC there see packets
    before their rules do."""
    chain = """
        counter lost_%(port)s { }
        counter late_%(port)s { }
        chain from_%(port)s {
            type filter hook ingress device "%(port)s" priority 0;
            %(rules)s
        }"""
    rules = ""
    if options.loss:
        rules += 'numgen random mod 10000 < %d counter name "lost_%%(port)s" drop;' % round(
            options.loss * 100)
    if options.reorder:
        rules += 'meta l4proto udp numgen random mod 10000 < %d counter name "late_%%(port)s" ' \
            'fwd to "held";' % round(options.reorder * 100)
    return "table netdev hosts {%s\n}" % "".join(
        chain % {"port": p, "rules": rules % {"port": p}} for p in ports)


def has_faults(options):
    return options.loss or options.reorder


def faulty_packets(kind, port):
    listed = json.loads(linux.tool("nft", "-j", "list", "counters"))["nftables"]
    return sum(item["counter"]["packets"] for item in listed
               if item.get("counter", {}).get("name") == kind + "_" + port)


def make_hosts(options, cwd):
    linux.tool("ip", "link", "add", "bridge", "type", "bridge", "stp_state", "0",
               "forward_delay", "0")
    linux.tool("ip", "link", "set", "bridge", "up")
    made = [fork_host(i, options, cwd) for i in range(1, options.hosts + 1)]
    for link, pid in made:
        link.control.settimeout(START_TIMEOUT)
        link.hear()
        linux.tool("ip", "link", "add", link.port, "type", "veth", "peer", "name", "eth0",
                   "netns", pid)
        linux.tool("ip", "link", "set", link.port, "master", "bridge", "up")
    if options.reorder:
        late.make("bridge")
    if has_faults(options):
        linux.tool("nft", "-f", "-", text=fault_rules([link.port for link, _ in made], options))
    for link, _ in made:
        link.control.send(b"network")
    for link, _ in made:
        link.hear()
        link.control.settimeout(None)
    return [link for link, _ in made]


# ---- the job -------------------------------------------------------------------------------------

class Job:
    def __init__(self, options, links, output, signals):
        self.options = options
        self.links = links
        self.output = output
        self.signals = signals
        self.selector = selectors.DefaultSelector()
        self.pending = list(options.events)
        self.timers = []
        self.partial = b""
        self.exit_code = None
        self.began = time.monotonic()
        self.started = None

    # -- faults

    def after(self, seconds, action):
        self.timers.append((time.monotonic() + seconds, action))

    def tell_event(self, text):
        complain("%.3f s: %s" % (time.monotonic() - self.began, text))

    def look_for_start(self):
        if self.exit_code is None and self.started is None and find_ranks():
            self.started = time.monotonic()
            self.schedule(lambda event: event.pattern is None)
        elif self.started is None:
            self.after(START_POLL, self.look_for_start)

    def schedule(self, which):
        for event in [e for e in self.pending if which(e)]:
            self.pending.remove(event)
            self.after(event.delay, lambda e=event: self.cause(e))

    def cause(self, event):
        if event.kind == "cut":
            self.plug(event.subject, False)
        elif event.kind == "do":
            self.links[event.subject - 1].tell(do=event.command)
            self.tell_event("%s: %s" % (host.name_of(event.subject), event.command))
        else:
            event.pid = find_ranks().get(event.subject)
            self.signal_rank(event, signal.SIGKILL if event.kind == "kill" else signal.SIGSTOP)
        if event.duration is not None:
            self.after(event.duration, lambda: self.undo(event))

    def undo(self, event):
        if event.kind == "cut":
            self.plug(event.subject, True)
        else:
            self.signal_rank(event, signal.SIGCONT)

    def plug(self, index, plugged):
        link = self.links[index - 1]
        linux.tool("ip", "link", "set", link.port, "up" if plugged else "down")
        self.tell_event("%s is %s the network" % (link.name, "back on" if plugged else "cut off"))

    def signal_rank(self, event, number):
        try:
            if event.pid is None:
                raise ProcessLookupError
            os.kill(event.pid, number)
            self.tell_event("%s to rank %d" % (number.name, event.subject))
        except ProcessLookupError:
            self.tell_event("no %s: rank %d is not running" % (number.name, event.subject))

    # -- what happens

    def copy_output(self):
        data = os.read(self.output, 1 << 16)
        if not data:
            self.selector.unregister(self.output)
            return
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            self.schedule(lambda e, l=line: e.pattern is not None and e.pattern.search(l))

    def hear(self, link):
        answer = link.hear()
        if "exit" in answer:
            self.exit_code = answer["exit"]

    def stop(self, number, code):
        """Asks mpirun to end the job; what it does not do in time is done by ending all."""
        self.links[0].tell(signal=number)
        self.after(GRACE, lambda: os._exit(code))

    def interrupted(self):
        number = self.signals.recv(1)[0]
        if number in SIGNALS:
            self.exit_code_after_stop = 128 + number
            self.stop(number, 128 + number)

    def out_of_time(self):
        complain("out of time after %g s" % self.options.timeout)
        self.exit_code_after_stop = opt.TIMED_OUT
        self.stop(signal.SIGTERM, opt.TIMED_OUT)

    exit_code_after_stop = None

    def run_timers(self):
        now = time.monotonic()
        due = [t for t in self.timers if t[0] <= now]
        self.timers = [t for t in self.timers if t[0] > now]
        for _, action in sorted(due, key=lambda t: t[0]):
            action()

    def wait(self):
        left = min((t[0] for t in self.timers), default=None)
        timeout = None if left is None else max(0, left - time.monotonic())
        for key, _ in self.selector.select(timeout):
            key.data()

    def drain(self):
        """What the program printed last."""
        if self.output is not None:
            os.set_blocking(self.output, False)
            try:
                while self.output in self.selector.get_map():
                    self.copy_output()
            except BlockingIOError:
                pass

    def run(self):
        add = self.selector.register
        for link in self.links:
            add(link.control, selectors.EVENT_READ, lambda link=link: self.hear(link))
        add(self.signals, selectors.EVENT_READ, self.interrupted)
        if self.output is not None:
            add(self.output, selectors.EVENT_READ, self.copy_output)
        if self.pending:
            self.look_for_start()
        if self.options.timeout:
            self.after(self.options.timeout, self.out_of_time)
        self.links[0].tell(run=[self.options.mpirun] + self.options.command)
        while self.exit_code is None:
            self.wait()
            self.run_timers()
        self.drain()
        return self.exit_code_after_stop or self.exit_code


def report(options, links):
    """Prints what was asked for; tells whether something is left."""
    left = 0
    for link in links:
        link.tell(report=True)
    for link in links:
        answer = link.hear()
        while "report" not in answer:
            answer = link.hear()
        answer = answer["report"]
        left += len(answer["left"])
        for thing in answer["left"]:
            complain("%s keeps %s" % (link.name, thing))
        if options.counters:
            c = answer["counters"]
            faulty = [faulty_packets(kind, link.port) if has_faults(options) else 0
                      for kind in ("lost", "late")]
            complain("%s sent %d bytes in %d packets, received %d in %d, lost %d packets, %d were "
                     "late" % (link.name, c["sent"]["bytes"], c["sent"]["packets"],
                               c["received"]["bytes"], c["received"]["packets"], *faulty))
    return left > 0


def try_all():
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC |
                  linux.CLONE_NEWNET)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.tool("ip", "link", "add", "bridge", "type", "bridge")
    linux.tool("ip", "link", "add", "port", "type", "veth", "peer", "name", "eth0")
    linux.tool("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1mbit", "burst",
               "128kb", "latency", "50ms")
    linux.tool("nft", "-f", "-", text=fault_rules(["port"], opt.parse(
        ["-n", "2", "--loss", "1", "--", "true"])))
    os.close(host.own_tmp("/"))
    # Last, as it lets a process have one more child only.
    linux.unshare(linux.CLONE_NEWPID)


def obstacle():
    """What the kernel does not let us make, tried in a process of its own; None if there is
    nothing."""
    read, write = os.pipe()
    if os.fork() == 0:
        text = ""
        try:
            try_all()
        except (OSError, linux.Failure) as e:
            text = str(e)
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    os.wait()
    with os.fdopen(read, "rb") as f:
        return f.read().decode() or None


# ---- the first process ---------------------------------------------------------------------------

def take_output(options):
    """The program's output goes through here only if some event waits for a line of it."""
    if not any(e.pattern is not None for e in options.events):
        return None, None
    read, write = os.pipe()
    return read, write


def handle_signals(handler):
    """From here on they come. Under nohup one of them is ignored, and stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def supervise(options, parent_alive):
    """Never returns. Runs as process 1 of the fabric's PID namespace."""
    code = opt.OWN_FAILURE
    try:
        linux.die_with_parent(None)
        if not parent_alive():
            os._exit(1)
        signals, wakeup = socket.socketpair()
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno())
        handle_signals(lambda *_: None)
        cwd = os.getcwd()
        linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc")
        output, write = take_output(options)
        real_stdout = os.dup(1)
        if write is not None:
            os.dup2(write, 1)
        links = make_hosts(options, cwd)
        if write is not None:
            os.dup2(real_stdout, 1)
            os.close(write)
        code = Job(options, links, output, signals).run()
        if options.counters or options.leaks:
            leaks = report(options, links)
            code = code or int(leaks)
    except Exception as e:  # whatever it is, it must be told pylint: disable=broad-except
        kind = "" if isinstance(e, (OSError, linux.Failure)) else type(e).__name__ + ": "
        complain(kind + str(e))
        code = opt.OWN_FAILURE
    finally:
        os._exit(code)
