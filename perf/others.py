#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""What processors do for others than what is measured. As a program, others.py [SECONDS], it looks on for so long (2)
and ends with 1 where that is too much to measure anything, after a line that says so."""
import os
import resource
import sys
import time

# Processors that others may use in the mean where something is measured.
QUIET = 0.1


class Others:
    """Follows what processors do for others than what is measured."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        """Seconds: on the clock, in which processors were busy or taken away, and in which they were for us."""
        spent = sum(sum(resource.getrusage(r)[:2])
                    for r in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
        busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), busy, spent

    def processors(self):
        """How many processors others have used in the mean since the start."""
        clock, busy, spent = (b - a for a, b in zip(self.start, self.now()))
        return max(busy - spent, 0) / clock if clock else 0.0


def main():
    others = Others()
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 2)
    used = others.processors()
    if used > QUIET:
        print(f"others use {used:.1f} of the {os.cpu_count()} processors")
    return 1 if used > QUIET else 0


if __name__ == "__main__":
    sys.exit(main())
