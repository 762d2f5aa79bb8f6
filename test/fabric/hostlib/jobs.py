# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of the test scripts over hosts, and what several of them demand."""

TWO = ["-n", "2"]
FOUR = ["-n", "4"]
FOUR_RANKS = ["-n", "2", "-k", "2"]
RIGHT = r"load: \d+ rounds of \d+ bytes, 0 wrong"
COMPONENT = "mca_osc_nicstride.so"
BARRIERS = ["--mca", "coll_nicbarrier_priority", "90"]
BY_DATAGRAMS = BARRIERS + ["--mca", "coll_nicbarrier_engine", "datagram"]
BY_PUTS = BARRIERS + ["--mca", "coll_nicbarrier_engine", "put"]
BARRIERS_RIGHT = r"barrier_outstanding: \d+ checks passed, 0 failed"
BARRIER_COMPONENT = "mca_coll_nicbarrier.so"


def dies(run):
    """The job ends soon and leaves nothing; mpirun says why, or who waited and came first."""
    run.fails().within(300).says(r"exited on signal 9|Killed|the connection is lost to process 1 "
                                r"|process 1 of job \d+: it has died").leaves_nothing()
