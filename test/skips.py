#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Which skips are expected: test/skips.txt says it for each kind of machine.

usage: test/skips.py TEST REASON    tells of a skip; status 1 where it is not expected
       test/skips.py --kinds        what kinds of machine this one is
       test/skips.py --logs LOG...  of unit tests, in which a skip is a line `skip: REASON`

All that runs tests asks here, so that a test which quietly stops to run is a failure.
"""

import glob
import os
import re
import sys

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skips.txt")
UNEXPECTED = "skipped for a reason that is not in test/skips.txt: "
# Conditions that skips.txt may name.
KINDS = {
    "any": lambda: True,
    "no-rdma": lambda: not glob.glob("/sys/class/infiniband/*"),
    "no-root": lambda: os.geteuid() != 0,
    "no-kvm": lambda: not os.access("/dev/kvm", os.R_OK | os.W_OK),
    "private-source": lambda: not readable_for_all(LIST),
    "no-cores": lambda: not glob.glob("/sys/devices/system/cpu/cpu0/topology/core_id"),
}


def readable_for_all(path):
    """May anybody read the file, on the whole way to it?"""
    while os.stat(path).st_mode & (0o5 if os.path.isdir(path) else 0o4) == (
            0o5 if os.path.isdir(path) else 0o4):
        if path == "/":
            return True
        path = os.path.dirname(path)
    return False


def read_list():
    """The entries that are for this machine: patterns of the test and of the reason."""
    entries = []
    with open(LIST, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split(maxsplit=2)
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 3 or words[0] not in KINDS:
                sys.exit("test/skips.txt:%d: not KIND TEST REASON with a KIND of %s"
                         % (number, ", ".join(KINDS)))
            if KINDS[words[0]]():
                entries.append((re.compile(words[1]), re.compile(words[2].strip())))
    return entries


def expected(test, reason):
    """May this test (its name and configuration) be skipped here for this reason?"""
    name = " ".join(test.split())
    return any(t.search(name) and r.fullmatch(reason) for t, r in read_list())


def reason_of(output):
    """The reason that a program of test/mpi gives, or a text that is no entry of the list."""
    found = re.search(r"^(?:[\w.-]+: skipped|SKIP): (.+?)\s*$", output, re.M)
    return found[1] if found else "no reason is given"


def tell(test, reason):
    """Prints one line; is it expected?"""
    if expected(test, reason):
        print("SKIP: %s: %s" % (test, reason), flush=True)
        return True
    print("FAIL: %s%s: %s" % (UNEXPECTED, test, reason), flush=True)
    return False


def main():
    words = sys.argv[1:]
    if words == ["--kinds"]:
        print(" ".join(k for k, holds in KINDS.items() if holds()))
        return 0
    if words[:1] == ["--logs"]:
        skips = []
        for log in words[1:]:
            with open(log, encoding="utf-8", errors="replace") as f:
                skips += [(os.path.splitext(os.path.basename(log))[0], reason.strip())
                          for reason in re.findall(r"^skip: (.*)$", f.read(), re.M)]
        return 0 if all([tell(*skip) for skip in skips]) else 1
    if len(words) != 2:
        sys.exit(__doc__)
    return 0 if tell(*words) else 1


if __name__ == "__main__":
    sys.exit(main())
