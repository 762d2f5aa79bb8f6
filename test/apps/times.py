#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""usage: times.py [--verbose] PROGRAM WITHOUT WITH

Sets the times that a benchmark of ARMCI-MPI, ComEx or Global Arrays prints side by side. WITHOUT and WITH are
prefixes of files: WITHOUT.1 and WITH.1 are what it printed in the first round without and with the components, and so
on. The least time of each line over all rounds counts. For each column of times it prints in how many lines the
components are faster or slower by more than 10 %, and the geometric mean of all ratios; --verbose prints every line.
Exits with 2 if there is no table for the program, and with 1 if a file has no times.
"""
import argparse
import glob
import math
import re
import sys

NUMBER = r"[-+]?\d*\.?\d+(?:[EDed][-+]?\d+)?"
GET_PUT_ACC = ("get", "put", "acc")
# Of each program: the fields that say what a line is about, and the field of each time. A field is one number; lines
# of other than numbers name what follows if the pattern of headings takes them.
TABLES = {
    # ARMCI-MPI
    "contiguous-bench": ((1,), dict(zip(GET_PUT_ACC, (2, 3, 4)))),
    "strided-bench": ((1, 2), dict(zip(GET_PUT_ACC, (3, 4, 5)))),
    "ping-pong": ((0,), {"": 1}),
    "ring-flood": ((0,), {"": 1}),
    "ARMCI_PutS_latency": ((0, 1), {"local": 2, "remote": 3}),
    "ARMCI_AccS_latency": ((0, 1), {"local": 2, "remote": 3}),
    "armci-perf": ((0,), dict(zip(GET_PUT_ACC, (2, 4, 6)))),
    "rmw_perf": ((), {"": 3}),
    # ComEx
    "perf_contig": ((0,), {"": 1}),
    "perf_strided": ((0, 3, 4), {"": 1}),
    "perf_amo": ((0,), {"": 1}),
    "comex/perf": ((0,), {"": 1}),
    # Global Arrays
    "ga/perf": ((0,), dict(zip(GET_PUT_ACC, (2, 4, 6)))),
    "perf2": ((0,), dict(zip(GET_PUT_ACC, (2, 4, 6)))),
    "perform": ((0,), dict(zip(GET_PUT_ACC, (2, 4, 6)))),
    "perfmod": ((0,), dict(zip(GET_PUT_ACC, (2, 4, 6)))),
    "mir_perf2": ((0,), dict(zip(GET_PUT_ACC, (2, 4, 6)))),
    "thread_perf_contig": ((0, 3), {"": 1}),
    "thread_perf_strided": ((4, 5, 3), {"": 1}),
}
HEADING = re.compile(r"#PNNL .*|Performance of .*|.*Array Section|ACCESS .*|.*Data Transfer|shifting .*")


def read(path, table):
    """{(heading, key, column): time}; a line that comes twice has a number behind its key"""
    key_fields, columns = table
    enough = max([*key_fields, *columns.values()])
    times, heading = {}, ""
    with open(path, errors="replace") as lines:
        for line in lines:
            line = re.sub(r"^\[\d+\]", "", line).strip()
            if HEADING.fullmatch(line):
                heading = " ".join(re.sub(r"#PNNL|armci|ComEx|comex|Performance of|Test", "", line).split())
                continue
            # Units and signs stand right behind some numbers.
            words = re.findall(NUMBER, re.sub(r"(?<=\d)X(?=\d)|MB/s", " ", line))
            of_words = len(re.findall(r"[A-Za-z]{4,}", line))
            if len(words) <= enough or (key_fields and (of_words > 1 or not re.match(r"[\d.]", line))):
                continue
            if not key_fields and not line.endswith("microseconds per call)"):
                continue
            numbers = [float(word.upper().replace("D", "E")) for word in words]
            key = " x ".join(f"{numbers[field]:g}" for field in key_fields)
            for column, field in columns.items():
                name, again = (heading, key, column), 2
                while name in times:
                    name, again = (heading, f"{key} #{again}", column), again + 1
                times[name] = numbers[field]
    return times


def least(prefix, table):
    best = {}
    for path in sorted(glob.glob(glob.escape(prefix) + ".*")):
        for name, time in read(path, table).items():
            best[name] = min(time, best.get(name, time))
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("program")
    parser.add_argument("without")
    parser.add_argument("with_them")
    arguments = parser.parse_args()
    name = arguments.program
    table = TABLES.get(name, TABLES.get(name.split("/")[-1]))
    if table is None:
        sys.exit(2)
    plain, ours = least(arguments.without, table), least(arguments.with_them, table)
    shared = [name for name in plain if name in ours and plain[name] > 0 and ours[name] > 0]
    if not shared:
        print(f"run: {arguments.program} printed no times")
        sys.exit(1)
    groups = {}
    for name in shared:
        groups.setdefault((name[0], name[2]), []).append(name)
    for (heading, column), names in groups.items():
        ratios = [plain[name] / ours[name] for name in names]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        what = " ".join(filter(None, (arguments.program.split("/")[-1], heading, column)))
        faster, slower = sum(r > 1.1 for r in ratios), sum(r < 1 / 1.1 for r in ratios)
        print(f"      {what:44} {len(names):3} lines: {faster:3} faster, {slower:3} slower, {mean:.2f} times as fast")
        if arguments.verbose:
            for name, ratio in zip(names, ratios):
                print(f"        {name[1]:>24} without {plain[name]:12g} with {ours[name]:12g}  {ratio:8.2f}")


if __name__ == "__main__":
    main()
