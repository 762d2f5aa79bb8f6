# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""What perf/compare can compare: selections of components, and presets of cases."""
import fnmatch
from dataclasses import dataclass, replace

OURS = "nicstride"
DEFAULT = "default"
OUR_BARRIER = "coll_nicbarrier"
OUR_PML = "pml_superpipe"
# Another MPI, for orientation: never the best of the others, since no user of Open MPI can choose it.
MPICH = "mpich"
# What Open MPI chooses where ours is not asked for, by our component.
DEFAULTS = {OURS: DEFAULT, OUR_PML: "pml_default", OUR_BARRIER: "coll_default"}
ANY_UCX = ["--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"]
SELECTIONS = {
    MPICH: [],
    # Those of the defaults say what the system's parameter file says, see default_selections.
    DEFAULT: ["--mca", "osc", f"^{OURS}"],
    "rdma": ["--mca", "osc", "rdma"],
    "ucx": ["--mca", "osc", "ucx", *ANY_UCX],
    "pt2pt": ["--mca", "osc", "pt2pt"],
    "sm": ["--mca", "osc", "sm"],
    OURS: ["--mca", "osc", OURS],
    # Of barriers; all but the first are put above it.
    "coll_default": ["--mca", "coll_nicbarrier_priority", "0"],
    "coll_sm": ["--mca", "coll_sm_priority", "95"],
    OUR_BARRIER: ["--mca", "coll_nicbarrier_priority", "90"],
    # What takes its steps between hosts: the process, or the kernel, where hosts have nicbarrier-bpf loaded.
    **{f"{OUR_BARRIER}/{stepper}": ["--mca", "coll_nicbarrier_priority", "90", "--mca",
                                    "coll_nicbarrier_engine", "datagram", "--mca",
                                    "coll_nicbarrier_stepper", stepper]
       for stepper in ("host", "bpf")},
    # Of messages.
    "pml_default": ["--mca", "pml", "^superpipe"],
    "pml_ob1": ["--mca", "pml", "ob1"],
    "pml_ucx": ["--mca", "pml", "ucx", *ANY_UCX],
    # Without the kernel's single copy.
    "pml_ucx/posix": ["--mca", "pml", "ucx", *ANY_UCX, "-x", "UCX_TLS=posix,self"],
    OUR_PML: ["--mca", "pml", "superpipe"],
}
# Of those that choose among ways: the parameter that forces one, and the ways.
FORCED = {
    OURS: ("osc_nicstride_method", ("direct", "cma", "sieve", "pack", "pipeline")),
    OUR_PML: ("pml_superpipe_protocol", ("stream", "pipeline", "copy", "rendezvous")),
}
for ours, (parameter, ways) in FORCED.items():
    for way in ways:
        SELECTIONS[f"{ours}/{way}"] = [*SELECTIONS[ours], "--mca", parameter, way]
TCP = ["--mca", "btl", "tcp,self", "-x", "UCX_TLS=tcp,self"]
# Every process counts as a node of its own, so that ours uses no shared memory either.
TCP_OURS = ["--mca", "osc_nicstride_node", "0"]
# The programs that are told how long to measure.
APPS = ("bt", "gather", "halo3d", "srumma", "transpose")
TIMED = ("strided_rma", "barrier", "p2p", "p2p_patterns", "collectives", "patterns", "cells",
         *(f"apps/{app}" for app in APPS))
# Times of a result by how their names begin, and what a table says of them.
TIMES = {
    "": "",
    "read_": ", arrived data read too",
    "first_": ", mean of the first 20 steps",
    "comm_": ", communication by itself",
    "p95_": ", 95th percentile",
    "p99_": ", 99th percentile",
    "skew_": ", from the first to leave to the last",
    "cpu_": ", processor time of all ranks",
    "target_": ", what a millisecond of the target's computing takes",
}


@dataclass(frozen=True)
class Preset:
    """What is measured: the lists multiply to the cases, one launch measures them all."""

    title: str
    selections: tuple
    lists: dict  # option letter -> values, in the order of the parts of a case's name
    program: str = "strided_rma"
    unit: str = "MB/s"
    ours: str = OURS
    mpirun: tuple = ()
    mpirun_ours: tuple = ()
    extra: tuple = ()
    shown: tuple = ("",)  # how the names of the times begin that have a table each
    parts: bool = False  # what a step's time is made of has a table, too
    hosts: int = 0  # made for it on this machine by test/fabric/hosts
    setup: str = ""  # what a shell runs on the first of them before
    ranks: int = 0  # whatever --ranks says
    gains: bool = False  # one table says what is gained against DEFAULT and the best, and how

    def cases(self):
        """All names of cases, as value/value/... in the order of the lists."""
        names = [""]
        for values in self.lists.values():
            names = [f"{n}/{v}" if n else v for n in names for v in values]
        return names

    def restricted(self, patterns):
        """The same preset with only the list entries that some chosen case needs."""
        chosen = [c.split("/") for c in self.cases() if matches(c, patterns)]
        lists = {
            letter: tuple(v for v in values if any(c[i] == v for c in chosen))
            for i, (letter, values) in enumerate(self.lists.items())
        }
        return replace(self, lists=lists)

    def options(self, milliseconds, reads):
        """The program's options."""
        options = []
        for letter, values in self.lists.items():
            options += ["-" + letter, ",".join(values)]
        if self.program in TIMED:
            options += ["-t", str(milliseconds)]
        if self.program == "strided_rma" and reads:
            options.append("-r")
        return [*options, *self.extra]

    def times(self, reads):
        """The times in a result: how the name begins, and what a table says of it."""
        return [(prefix, TIMES[prefix]) for prefix in (*self.shown, *(("read_",) if reads else ()))]

    def figure(self, seconds, size):
        """A time of an operation on so many bytes in the preset's unit, or None."""
        if seconds is None:
            return None
        return 1e6 * seconds if self.unit == "us" else 1e-6 * size / seconds


STRIDED = {"m": ("64K", "1M"), "b": ("8", "64", "512", "1K", "4K", "contig")}
# In this order because compare-and-swap on allocated windows crashes osc/rdma of Open MPI 4.1.4,
# and with it go the cases that would come later.
LATENCY = {"w": ("create", "allocate"), "o": ("put_lat", "get_lat", "fop_lat", "cas_lat")}
ON_NODE = ("rdma", "ucx", "pt2pt", OURS)
PATTERNS = Preset(
    "a step of the halo by columns, one node",
    ("ucx", "pt2pt", OURS),
    {
        "n": ("64", "256", "512", "1024"),
        "s": ("fence", "pscw"),
        "c": ("none", "20us", "200us"),
        "w": ("create", "allocate"),
    },
    program="patterns",
    unit="us",
    shown=("", "first_"),
)
P2P = Preset(
    "messages between two processes of a node",
    ("pml_ob1", "pml_ucx", "pml_ucx/posix", OUR_PML),
    {
        "o": ("pingpong", "exchange"),
        "m": ("64K", "256K", "1M", "4M", "16M"),
        "b": ("8", "64", "1K", "contig"),
    },
    program="p2p",
    unit="us",
    ours=OUR_PML,
)
P2P_PATTERNS = Preset(
    "a step of the halo by columns, sent, one node",
    P2P.selections,
    {"n": ("64", "256", "512", "1024"), "c": ("none", "20us", "200us")},
    program="p2p_patterns",
    unit="us",
    ours=OUR_PML,
    shown=("", "first_"),
)
CELLS_TITLE = "one operation, or 64 (16 of 1 MiB: puts64, gets64), and a synchronisation, one node"
def barrier_over_hosts(n, load):
    """Barriers of one process on each of n hosts; with `load` all processors compute for others, too."""
    return Preset(
        f"MPI_Barrier and what 1 ms of sleep does not hide of MPI_Ibarrier, {n} hosts over TCP"
        + (", while other processes compute on all processors" if load else ""),
        ("coll_default", f"{OUR_BARRIER}/host", f"{OUR_BARRIER}/bpf"),
        {"o": ("barrier", "overlap")},
        program="barrier",
        unit="us",
        ours=f"{OUR_BARRIER}/bpf",
        mpirun=("--mca", "pml", "ob1"),
        extra=("-z", "-c", "1000"),
        shown=("", "p99_", "cpu_"),
        hosts=n,
        ranks=n,
        setup="for i in `seq $(nproc)`; do (while :; do :; done) & done" if load else "",
    )


PRESETS = {
    "mapped": Preset(
        "mapped windows (MPI_Win_allocate), one node",
        ("rdma", "ucx", "sm", OURS),
        {"w": ("allocate",), "o": ("put", "get"), **STRIDED},
    ),
    "private": Preset(
        "private windows (MPI_Win_create), one node",
        ON_NODE,
        {"w": ("create",), "o": ("put", "get"), **STRIDED},
    ),
    "shared": Preset(
        "shared windows (MPI_Win_allocate_shared)",
        ("sm", OURS),
        {"w": ("shared",), "o": ("put", "get"), **STRIDED},
    ),
    "dynamic": Preset(
        "dynamic windows, one node",
        ON_NODE,
        {"w": ("dynamic",), "o": ("put", "get"), **STRIDED},
    ),
    "tcp": Preset(
        "two processes over TCP",
        ON_NODE,
        {"w": ("create",), "o": ("put", "get"), **STRIDED},
        mpirun=tuple(TCP),
        mpirun_ours=tuple(TCP_OURS),
    ),
    "accumulate": Preset(
        "MPI_Accumulate (sum), one node",
        ("rdma", "ucx", "pt2pt", "sm", OURS),
        {
            "w": ("allocate", "create"),
            "o": ("acc",),
            "m": ("64K",),
            "b": ("8", "64", "4K", "contig"),
        },
    ),
    "updates": Preset(
        "four ranks update memory of one of them at the same time, one node",
        ("rdma", "ucx", "pt2pt", "sm", OURS),
        {
            "o": ("acc", "acc_int", "gacc", "fetch", "fop", "cas"),
            "m": ("8", "16K"),
            "b": ("512", "contig"),
            "W": ("same", "apart"),
            "w": ("allocate",),
        },
        program="updates",
        unit="us",
        ranks=4,
    ),
    "typeloop": Preset(
        "a fresh datatype for each operation, one node",
        ("rdma", "ucx", "pt2pt", "sm", OURS),
        {
            "w": ("allocate", "create"),
            "o": ("put", "put_typeloop", "get", "get_typeloop"),
            "m": ("512", "8K"),
            "b": ("8", "64"),
        },
        unit="us",
    ),
    "latency": Preset(
        "8-byte operation and flush, one node",
        ("rdma", "ucx", "pt2pt", "sm", OURS),
        LATENCY,
        unit="us",
    ),
    "burst": Preset(
        "256 operations of 8 bytes and a flush, one node, for each operation",
        ON_NODE,
        {"w": ("create",), "o": ("put_lat", "get_lat", "acc_lat", "fop_lat")},
        unit="us",
        extra=("-N", "256"),
    ),
    "burst_strided": Preset(
        "256 operations on 512 bytes in blocks and a flush, one node, for each operation",
        ON_NODE,
        {"w": ("create",), "o": ("put", "get", "acc"), "m": ("512",), "b": ("8", "64", "contig")},
        unit="us",
        extra=("-N", "256"),
    ),
    "burst_tcp": Preset(
        "256 operations of 8 bytes and a flush, two processes over TCP, for each operation",
        ON_NODE,
        {"w": ("create",), "o": ("put_lat", "get_lat", "acc_lat", "fop_lat")},
        unit="us",
        mpirun=tuple(TCP),
        mpirun_ours=tuple(TCP_OURS),
        extra=("-N", "256"),
    ),
    "latency_tcp": Preset(
        "8-byte operation and flush, two processes over TCP",
        ON_NODE,
        {**LATENCY, "w": ("create",)},
        unit="us",
        mpirun=tuple(TCP),
        mpirun_ours=tuple(TCP_OURS),
    ),
    "strided": Preset(
        "strided put and get, mapped (allocate) and private (create) windows, one node",
        ON_NODE,
        {
            "w": ("allocate", "create"),
            "o": ("put", "get"),
            "m": ("64K",),
            "b": ("8", "64", "512", "contig"),
        },
    ),
    "barrier": Preset(
        "MPI_Barrier, MPI_Ibarrier with MPI_Wait, what 200 us of computing do not hide, and the first of a "
        "fresh communicator, alone and with MPI_Comm_dup and MPI_Comm_free",
        ("coll_default", "coll_sm", OUR_BARRIER),
        {"o": ("barrier", "ibarrier", "overlap", "first", "fresh")},
        program="barrier",
        unit="us",
        ours=OUR_BARRIER,
        shown=("", "p99_", "skew_"),
    ),
    **{f"barrier_hosts{n}{name}": barrier_over_hosts(n, load) for n in (2, 4, 8)
       for name, load in (("", False), ("_load", True))},
    "p2p": P2P,
    "p2p_short": replace(
        P2P,
        title="short messages between two processes of a node",
        lists={"o": ("pingpong", "rate"), "m": ("8", "64", "256", "1K", "4K"), "b": ("contig",)},
    ),
    "first_touch": replace(
        P2P,
        title="messages whose buffers are new each time, touched or not where they are received",
        lists={"o": ("fresh", "untouched"), "m": ("64K", "256K", "1M", "4M", "16M"), "b": ("contig",)},
    ),
    "p2p_patterns": P2P_PATTERNS,
    "p2p_collectives": replace(
        P2P_PATTERNS,
        title="collective operations by messages (coll/tuned), one node",
        lists={"o": ("allreduce", "alltoall", "bcast"), "m": ("8", "256", "4K", "64K", "1M")},
        program="collectives",
        # Those that would go by shared memory of their own, or past the layer.
        mpirun=("--mca", "coll", "^sm,xhc,han,hcoll,ucc"),
    ),
    "p2p_hosts": replace(
        P2P,
        title="messages between two hosts over TCP",
        selections=("pml_ob1", "pml_ucx", OUR_PML),
        lists={"o": ("pingpong",), "m": ("64K", "256K", "1M", "4M"), "b": P2P.lists["b"]},
        hosts=2,
    ),
    "patterns": PATTERNS,
    "cells": Preset(
        CELLS_TITLE,
        ("rdma", "ucx", "pt2pt", OURS),
        # Compare-and-swap and allocated windows last, see LATENCY.
        {
            "o": ("put", "get", "acc", "gacc", "puts64", "gets64", "fop", "cas"),
            "m": ("8", "1K", "64K", "1M"),
            "s": ("fence", "pscw", "lock", "flush"),
            "w": ("create", "dynamic", "allocate"),
        },
        program="cells",
        unit="us",
    ),
    "away": Preset(
        "strided put and flush to a target that computes between two calls of MPI, one node",
        ("rdma", "ucx", "pt2pt", OURS),
        {
            "C": ("100us", "500us", "2ms"),
            "m": ("8", "512", "4K", "32K"),
            "b": ("8",),
            "w": ("create", "allocate"),
        },
        program="away",
        unit="us",
        shown=("", "p95_"),
    ),
    "burden": Preset(
        "put after put and a flush to a target that computes, and what that costs the target, one node",
        ("rdma", "ucx", "pt2pt", *(f"{OURS}/{way}" for way in ("cma", "pack", "pipeline", "direct")), OURS),
        {"m": ("64K", "1M"), "b": ("8", "1K", "contig"), "w": ("create", "allocate")},
        program="away",
        unit="us",
        extra=("-C", "500us", "-p", "none", "-i", "1000000", "-t", "60"),
        shown=("", "target_"),
    ),
    "first": replace(PATTERNS, shown=("first_",)),
    "patterns_hosts": replace(
        PATTERNS,
        title="a step of the halo by columns, two hosts of one rank over TCP",
        lists={**PATTERNS.lists, "w": ("create",)},
        hosts=2,
    ),
}
# The applications, each with few cases; between hosts windows of one kind.
APP_LISTS = {
    "bt": {"n": ("12", "24", "64"), "s": ("fence", "flush")},
    "gather": {"n": ("1000", "30000", "300000"), "s": ("fence", "flush")},
    "halo3d": {"n": ("16", "64", "128"), "s": ("fence", "pscw", "flush")},
    "srumma": {"n": ("256", "512", "1024"), "s": ("flush",)},
    "transpose": {"n": ("64", "256", "1024"), "s": ("fence", "flush")},
}
for app in APPS:
    PRESETS[app] = Preset(
        f"{app}: one node",
        (DEFAULT, *ON_NODE),
        {**APP_LISTS[app], "w": ("create", "allocate")},
        program=f"apps/{app}",
        unit="us",
        shown=("comm_", ""),
        gains=True,
    )
    PRESETS[f"{app}4"] = replace(PRESETS[app], title=f"{app}: 4 ranks on one node", ranks=4)
    PRESETS[f"{app}_hosts"] = replace(
        PRESETS[app],
        title=f"{app}: two hosts of one rank over TCP",
        selections=(DEFAULT, "ucx", "pt2pt", OURS),
        lists={**APP_LISTS[app], "w": ("create",)},
        hosts=2,
    )
# Several presets by one name.
GROUPS = {
    "apps" + place: tuple(app + place for app in APPS) for place in ("", "4", "_hosts")
}
# All that make perf measures: something of each component and program.
GROUPS["everything"] = (
    "patterns", "strided", "latency", "burst", "accumulate", *APPS, "p2p", "p2p_short", "p2p_patterns",
    "p2p_collectives", "barrier",
)
# What --quick runs when no presets are named: few cases of each component, small enough for the slowest
# selection.
QUICK = {
    "patterns": replace(
        PATTERNS,
        selections=(DEFAULT, *PATTERNS.selections),
        lists={"n": ("64", "256", "1024"), "s": ("fence",), "c": ("none",), "w": ("create", "allocate")},
        parts=True,
    ),
    "strided": replace(PRESETS["strided"], selections=(DEFAULT, "ucx", "pt2pt", "sm", OURS)),
    "p2p": replace(
        P2P,
        selections=("pml_default", *P2P.selections),
        # A short one can only be contiguous.
        lists={"o": ("pingpong",), "m": ("8", "64K", "1M"), "b": ("contig", "8", "64", "1K")},
    ),
    "p2p_patterns": replace(
        P2P_PATTERNS,
        selections=("pml_default", *P2P_PATTERNS.selections),
        lists={"n": ("64", "256", "1024"), "c": ("none",)},
        shown=("",),
    ),
    "barrier": replace(
        PRESETS["barrier"], lists={"o": ("barrier", "ibarrier", "overlap")}, shown=("",)
    ),
}


def default_selections(system):
    """What Open MPI chooses where ours is not asked for, whatever the user's own parameter file says.
    `system` are the values of the parameters osc and pml in the system's: Debian's leaves out some components."""
    selections = {}
    for framework, name in (("osc", OURS), ("pml", "superpipe")):
        value = system.get(framework, "")
        if value.startswith("^"):
            value += "," + name
        elif not value or name in value.split(","):
            value = "^" + name
        selections[DEFAULTS[name if framework == "osc" else OUR_PML]] = ["--mca", framework, value]
    return selections


def forced(ours):
    """A component that chooses, and the selections in which each of its ways is forced."""
    return [ours, *(name for name in SELECTIONS if name.startswith(ours + "/"))]


def matches(case, patterns):
    """Whether a case's name, or its last parts, match one of the shell patterns."""
    return not patterns or any(
        fnmatch.fnmatchcase(case, p) or fnmatch.fnmatchcase(case, "*/" + p) for p in patterns
    )


def case_name(result, preset):
    """The name of a case as Preset.cases gives it, from a result."""
    parts = {
        "w": lambda r: r["window"],
        "o": lambda r: r["op"],
        "m": lambda r: size_text(r["size"]),
        "b": lambda r: size_text(r["block"]) if r["block"] else "contig",
        "d": lambda r: f"{int(r['dims'])}d",
        "s": lambda r: r["sync"],
        "T": lambda r: r["types"],
        "n": lambda r: str(int(r["n"])),
        "c": lambda r: r["compute"],
        "C": lambda r: r["slice"],
        "W": lambda r: r["where"],
    }
    return "/".join(parts[letter](result) for letter in preset.lists)


def size_text(size):
    size = int(size)
    for shift, letter in ((20, "M"), (10, "K")):
        if size >> shift and size % (1 << shift) == 0:
            return f"{size >> shift}{letter}"
    return str(size)
