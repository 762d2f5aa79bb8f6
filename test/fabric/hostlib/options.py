# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""The command line of `hosts`, and whether it can work here."""

import argparse
import os
import re
import shutil
import sys

from hostlib import linux

USAGE = 2
CANNOT = 77
OWN_FAILURE = 125
TIMED_OUT = 124

DESCRIPTION = """\
Runs mpirun across several hosts that are made for it on this machine: network, IPC, PID, mount and
UTS namespaces of their own, joined by a bridge, so that nothing but the network connects them.
Each has its own /dev/shm and /tmp (what lies in /tmp is seen, what is written there stays in the
host, but for the working directory), host name (host1, host2, ...), address and boot id.

Everything after -- is handed on to mpirun, which starts on host1 and finds the others in its
default hostfile. The exit status is mpirun's. Whatever way it ends, nothing is left behind."""

EPILOG = """\
A MOMENT is
  SECONDS          after the first rank was started, as 1.5
  /REGEX/          when a line that matches comes out of the program; its output must be flushed
  /REGEX/+SECONDS  so long after that

HOST is a number from 1, or "all". RANK is a rank in MPI_COMM_WORLD.

exit status: mpirun's (128 + N where signal N killed it), or 1 for --leaks; 124 after --timeout; 125 where hosts
itself fails, 2 for a wrong command line; with --check 0 or 77

examples:
  hosts -n 2 -- --mca pml ob1 --mca osc nicstride test/mpi/put_get
  hosts -n 3 -k 2 --loss 2 --counters -- -x UCX_TLS=tcp,self,sysv,posix --mca pml ucx ./program
  hosts -n 2 --cut 2@/halfway/:1 -- ./program
  hosts -n 2 --kill 1@0.5 --leaks -- ./program"""


class Event:
    """A fault at a moment. `subject` is a host or a rank."""

    def __init__(self, kind, subject, pattern, delay, duration):
        self.kind = kind
        self.subject = subject
        self.pattern = pattern
        self.delay = delay
        self.duration = duration
        self.pid = self.command = None


EVENT = re.compile(r"(?P<subject>\d+)@(?:(?P<after>\d+(?:\.\d+)?)"
                   r"|/(?P<pattern>.*)/(?:\+(?P<plus>\d+(?:\.\d+)?))?)"
                   r"(?::(?P<duration>\d+(?:\.\d+)?))?$")


def event_of(kind, needs_duration):
    def parse(text):
        m = EVENT.match(text)
        if m is None:
            raise argparse.ArgumentTypeError("%r is not WHO@MOMENT%s" % (
                text, ":SECONDS" if needs_duration else ""))
        if needs_duration and m["duration"] is None:
            raise argparse.ArgumentTypeError("%r lacks :SECONDS" % text)
        if kind == "kill" and m["duration"] is not None:
            raise argparse.ArgumentTypeError("%r: what is killed stays dead" % text)
        try:
            pattern = re.compile(m["pattern"].encode()) if m["pattern"] is not None else None
        except re.error as e:
            raise argparse.ArgumentTypeError("%r: %s" % (text, e)) from e
        return Event(kind, int(m["subject"]), pattern, float(m["after"] or m["plus"] or 0),
                     float(m["duration"]) if m["duration"] else None)
    return parse


def order_of(text):
    """HOST@MOMENT=COMMAND"""
    m = re.fullmatch(r"(\d+@(?:\d+(?:\.\d+)?|/.*?/(?:\+\d+(?:\.\d+)?)?))=(.*)", text, re.S)
    if m is None:
        raise argparse.ArgumentTypeError("%r is not HOST@MOMENT=COMMAND" % text)
    event = event_of("do", False)(m[1])
    event.command = m[2]
    return event


def number(low, high, kind=int):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError("%r is not a number from %s to %s"
                                             % (text, low, high))
        return value
    return parse


def size(text):
    if not re.fullmatch(r"[1-9]\d*[kmg%]?", text):
        raise argparse.ArgumentTypeError("%r is not a size, as 64m or 50%%" % text)
    return text


def rate(text):
    if not re.fullmatch(r"[1-9]\d*(\.\d+)?[kmg]bit", text):
        raise argparse.ArgumentTypeError("%r is not a rate, as 100mbit" % text)
    return text


def of_host(pattern, form):
    """HOST:REST, with the parts of REST."""
    def parse(text):
        m = re.fullmatch(r"(\d+|all):" + pattern, text, re.S)
        if m is None:
            raise argparse.ArgumentTypeError("%r is not %s" % (text, form))
        return (0 if m[1] == "all" else int(m[1]),) + m.groups()[1:]
    return parse


def make_parser():
    parser = argparse.ArgumentParser(
        prog="hosts", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False,
        usage="hosts -n HOSTS [options] -- MPIRUN-ARGUMENTS PROGRAM ...",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("-n", "--hosts", type=number(2, 8), metavar="HOSTS", help="2 to 8")
    add("-k", "--ranks-per-host", type=number(1, 64), default=1, metavar="K",
        help="slots of each host (default 1); mpirun starts as many ranks as there are slots "
        "unless -np says otherwise, host by host")
    add("--check", action="store_true",
        help="only tell whether it can work here: exit status 0, or 77 after the reason")
    add("--timeout", type=number(1, 86400, float), metavar="SECONDS", help="end it after so long")
    add("--mpirun", default=os.environ.get("MPIRUN") or "mpirun", help="(default: $MPIRUN)")

    add = parser.add_argument_group("the network").add_argument
    add("--loss", type=number(0, 90, float), default=0, metavar="PERCENT",
        help="of the packets that each host sends so many are lost on their way, at random")
    add("--reorder", type=number(0, 90, float), default=0, metavar="PERCENT",
        help="of the packets of UDP that each host sends so many come up to 5 ms late, and every "
        "other one of those comes twice")
    add("--rate", type=rate, metavar="RATE", help="limit for what each host sends, as 100mbit")
    add("--cut", type=event_of("cut", False), action="append", default=[], dest="events",
        metavar="HOST@MOMENT[:SECONDS]",
        help="unplug the host's cable, for so long or for good")
    add("--setup", type=of_host(r"(.*)", "HOST:COMMAND"), action="append", default=[],
        metavar="HOST:COMMAND", help="a shell on the host runs the command before the job, which does "
        "not begin where it fails; what it leaves running does not count as left behind (--leaks)")
    add("--do", type=order_of, action="append", dest="events", metavar="HOST@MOMENT=COMMAND",
        help="a shell on the host runs the command")
    add("--counters", action="store_true",
        help="at the end print each host's packets and bytes, and how many were lost or late, on "
        "standard error")

    add = parser.add_argument_group("processes").add_argument
    add("--stop", type=event_of("stop", True), action="append", dest="events",
        metavar="RANK@MOMENT:SECONDS", help="SIGSTOP, and SIGCONT so much later")
    add("--kill", type=event_of("kill", False), action="append", dest="events",
        metavar="RANK@MOMENT", help="SIGKILL")
    add("--leaks", action="store_true",
        help="at the end print what is left on each host, on standard error: files in /dev/shm "
        "and /tmp, System V shared memory, processes; then the exit status is not 0")

    add = parser.add_argument_group("what the hosts are like").add_argument
    add("--shm-size", type=size, default="50%", metavar="SIZE", help="of /dev/shm, as 64m (default 50%%)")
    add("--memlock", type=number(0, 1 << 40), metavar="KIB", help="limit of locked memory")
    add("--deny-cma", action="store_true",
        help="process_vm_readv and process_vm_writev are refused")
    add("--no-topology", action="store_true",
        help="hwloc finds neither cores nor caches: an empty /sys/devices/system, and it does not "
        "ask the processor")
    add("--env", type=of_host(r"(\w+)=(.*)", "HOST:NAME=VALUE"), action="append", default=[],
        metavar="HOST:NAME=VALUE", help="environment of what is started on a host")
    add("--bind", type=of_host(r"([^:]+):([^:]+)", "HOST:SOURCE:TARGET"), action="append",
        default=[], metavar="HOST:SOURCE:TARGET",
        help="a host sees the file or directory SOURCE in place of TARGET")
    return parser


def parse(argv):
    """The options, with `command` for what follows --. Exits for a wrong command line."""
    parser = make_parser()
    at = argv.index("--") if "--" in argv else len(argv)
    options = parser.parse_args(argv[:at])
    options.command = argv[at + 1:]
    if options.check:
        return options
    if options.hosts is None:
        parser.error("-n HOSTS is missing")
    if not options.command:
        parser.error("nothing to run: mpirun's arguments and the program come after --")
    for what, host in ([("--" + e.kind, e.subject) for e in options.events
                        if e.kind in ("cut", "do")] +
                       [("--setup", s[0]) for s in options.setup] +
                       [("--env", e[0]) for e in options.env] +
                       [("--bind", b[0]) for b in options.bind]):
        if host > options.hosts or (what in ("--cut", "--do") and host == 0):
            parser.error("%s: there is no host %d" % (what, host))
    for _, source, target in options.bind:
        for path in (source, target):
            if not os.path.exists(path):
                parser.error("--bind: %s does not exist" % path)
    if options.deny_cma and not linux.can_deny_single_copy():
        parser.error("--deny-cma does not know this architecture")
    return options


def obstacle(options):
    """Why it cannot work here, or None."""
    if sys.platform != "linux":
        return "namespaces are Linux's"
    if os.geteuid() != 0:
        return "namespaces need root"
    for name, package in (("ip", "iproute2"), ("tc", "iproute2"), ("nft", "nftables")):
        if linux.find_tool(name) is None:
            return "%s is missing (Debian: apt-get install %s)" % (name, package)
    if shutil.which(options.mpirun) is None:
        return "%s is missing (Debian: apt-get install openmpi-bin)" % options.mpirun
    return None
