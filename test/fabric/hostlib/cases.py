# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Cases of a test script over hosts: run them, tell of each, count."""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time

from hostlib import linux

FABRIC = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(FABRIC))
import skips  # noqa: E402 # pylint: disable=wrong-import-position

HOSTS = os.path.join(FABRIC, "hosts")
EXIT_SKIP = 77
# What ours has UCX take where there is no adapter, so that the answer is the same whatever UCX would find.
TLS = "tcp,self,sysv,cma"
PML = {
    "ob1": ["--mca", "pml", "ob1"],
    "ucx": ["--mca", "pml", "ucx",
            "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"],
    "superpipe": ["--mca", "pml", "superpipe"],
}
# mpirun gathers help texts, and has lost one: a defect of its own.
LOST_TEXT = r"ORTE_ERROR_LOG: (Data unpack|Out of resource) .*show_help"
TRIES = 3


def take_signals():
    """In the child: signals end it, though we may have been started where they are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def end_with_us():
    """In the child: an interrupted script leaves no job behind, whatever interrupts it."""
    take_signals()
    linux.die_with_parent(None)


class Skip(Exception):
    """A case that cannot be run here, and why."""


class Run:
    """One run of `hosts`: what it printed, how it ended, how long it took."""

    def __init__(self, build, arguments, timeout=900, env=None):
        self.command = [HOSTS] + arguments
        began = time.monotonic()
        # The component asks UCX's environment; what the caller has of it would change the case.
        full = dict(os.environ, UCX_TLS=TLS, OMPI_MCA_mca_base_component_path=build.components,
                    **(env or {}))
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, env=full,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True, preexec_fn=end_with_us)
        self.timeout = timeout
        self.began = began
        self.code = self.output = self.seconds = None

    def wait(self):
        try:
            output, _ = self.process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            output, _ = self.process.communicate()
            output += b"\n(killed after %d s)" % self.timeout
        self.seconds = time.monotonic() - self.began
        self.code = self.process.returncode
        self.output = output.decode(errors="replace")
        return self

    # -- what a case demands; each is told with the whole output where it is not so

    def need(self, condition, text):
        if not condition:
            raise AssertionError(text)
        return self

    def ends_with(self, code):
        return self.need(self.code == code, "exit status %d, not %d" % (self.code, code))

    def fails(self):
        return self.need(self.code not in (0, 124, 125), "exit status %d" % self.code)

    def within(self, seconds):
        return self.need(self.seconds < seconds, "it took %.1f s" % self.seconds)

    def says(self, pattern):
        return self.need(re.search(pattern, self.output), "nothing matches /%s/" % pattern)

    def says_times(self, pattern, times):
        """Once on each host, for example."""
        n = len(re.findall(pattern, self.output))
        return self.need(n == times, "%d times /%s/, not %d" % (n, pattern, times))

    def says_not(self, pattern):
        return self.need(not re.search(pattern, self.output), "something matches /%s/" % pattern)

    def leaves_nothing(self):
        return self.says_not(r"(?m)^hosts: \w+ keeps ")


class Build:
    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.libraries = os.path.join(self.path, ".libs")
        system = subprocess.run([os.environ.get("OMPI_INFO") or "ompi_info", "--path",
                                 "pkglibdir", "--parsable"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout.strip().rpartition(":")[2]
        self.components = self.libraries + ":" + system
        fabric = os.path.join(self.path, "test", "fabric")
        self.load, self.room, self.farewell, self.rounds, self.forge = (
            os.path.join(fabric, name) for name in ("load", "room", "farewell", "rounds", "forge"))
        self.bpf = os.path.join(self.path, "tools", "nicbarrier-bpf")
        self.barriers, self.computing = (
            os.path.join(self.path, "test", "mpi", name) for name in ("barrier_outstanding", "barrier_computing"))

    def run(self, options, job, pml="ob1", osc="nicstride", timeout=900, env=None):
        """Runs a job to its end: options of hosts, then what comes after --."""
        selected = ["--mca", "osc", osc] if osc else []
        for _ in range(TRIES):
            run = Run(self, options + ["--leaks", "--"] + PML[pml] + selected + job, timeout,
                      env).wait()
            if not re.search(LOST_TEXT, run.output):
                break
        return run


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=".", help="build tree (default: working directory)")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cases whose name "
                        "matches")
    parser.add_argument("--list", action="store_true", help="print the names and run nothing")
    return parser.parse_args()


def reason_to_skip():
    done = subprocess.run([HOSTS, "--check"], check=False, text=True, stdout=subprocess.PIPE)
    return done.stdout.strip() if done.returncode == EXIT_SKIP else None


def run_case(case, build, totals):
    began = time.monotonic()
    try:
        case(build)
        verdict, text = "PASS", ""
    except Skip as e:
        verdict, text = "SKIP", str(e)
        if not skips.expected(case.__name__, text):
            verdict, text = "FAIL", skips.UNEXPECTED + text
    except AssertionError as e:
        verdict, text = "FAIL", str(e)
        run = e.__traceback__
        while run is not None and not isinstance(run.tb_frame.f_locals.get("self"), Run):
            run = run.tb_next
        run = run.tb_frame.f_locals["self"] if run is not None else None
        if run is not None:
            text += "\n  command: " + shlex.join(run.command)
            text += "".join("\n  | " + line for line in run.output.splitlines()[-60:])
    totals[verdict] += 1
    print("%s: %s (%.1f s)%s" % (verdict, case.__name__, time.monotonic() - began,
                                 " " + text if text else ""), flush=True)


def main(description, cases):
    """Runs the functions `cases`, each with a Build; their docstrings say what they show."""
    args = parse_arguments(description)
    # Exceptions, so that what was made is cleaned up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    chosen = [c for c in cases if re.search(args.filter, c.__name__)]
    if args.list:
        for case in chosen:
            print("%-24s %s" % (case.__name__, case.__doc__.split("\n", maxsplit=1)[0]))
        return 0
    totals = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    reason = reason_to_skip()
    if reason is not None:
        expected = skips.tell(os.path.basename(sys.argv[0]), reason)
        totals["SKIP" if expected else "FAIL"] = len(chosen)
    else:
        build = Build(args.build)
        for case in chosen:
            run_case(case, build, totals)
    print("%(PASS)d passed, %(FAIL)d failed, %(SKIP)d skipped" % totals)
    return 1 if totals["FAIL"] or not chosen else 0
