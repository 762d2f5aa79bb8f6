#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Says in a few lines what `perf/compare --quick --json FILE` has found: summary.py FILE [OUT.svg|OUT.png ...]

A verdict for each component and a table. Where others used the machine meanwhile, or it has one processor, a warning
takes the place of the verdict. OUT are pictures of the table, drawn by perf/plot where there is a verdict.
"""
import json
import statistics
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # the source directory stays as it is
from others import QUIET
from presets import MPICH

HERE = Path(__file__).resolve().parent
# What of the presets is shown: component, kind of case, and for each row the preset, the case and its name.
CASES = (
    ("osc_nicstride", "private window", (
        ("patterns", "64/fence/none/create", "halo of 64 doubles, fence"),
        ("patterns", "256/fence/none/create", "halo of 256 doubles, fence"),
        ("patterns", "1024/fence/none/create", "halo of 1024 doubles, fence"),
        ("strided", "create/put/64K/8", "put 64 KiB, blocks of 8 B"),
        ("strided", "create/put/64K/64", "put 64 KiB, blocks of 64 B"),
        ("strided", "create/put/64K/512", "put 64 KiB, blocks of 512 B"),
        ("strided", "create/put/64K/contig", "put 64 KiB, contiguous"),
        ("strided", "create/get/64K/8", "get 64 KiB, blocks of 8 B"),
        ("strided", "create/get/64K/contig", "get 64 KiB, contiguous"),
    )),
    ("osc_nicstride", "MPI's window", (
        ("patterns", "256/fence/none/allocate", "halo of 256 doubles, fence"),
        ("strided", "allocate/put/64K/8", "put 64 KiB, blocks of 8 B"),
        ("strided", "allocate/put/64K/512", "put 64 KiB, blocks of 512 B"),
        ("strided", "allocate/put/64K/contig", "put 64 KiB, contiguous"),
    )),
    ("pml_superpipe", "messages", (
        ("p2p_patterns", "256/none", "halo of 256 doubles"),
        ("p2p", "pingpong/8/contig", "8 B"),
        ("p2p", "pingpong/64K/contig", "64 KiB, contiguous"),
        ("p2p", "pingpong/64K/8", "64 KiB, blocks of 8 B"),
        ("p2p", "pingpong/64K/64", "64 KiB, blocks of 64 B"),
        ("p2p", "pingpong/1M/contig", "1 MiB, contiguous"),
        ("p2p", "pingpong/1M/1K", "1 MiB, blocks of 1 KiB"),
    )),
    ("coll_nicbarrier", "barriers", (
        ("barrier", "barrier", "MPI_Barrier"),
        ("barrier", "ibarrier", "MPI_Ibarrier and MPI_Wait"),
        ("barrier", "overlap", "MPI_Ibarrier behind 200 us"),
    )),
)
# As fast as another one is what differs by less.
SAME = 1.05
# Rounds by which it is sure who is faster.
FEWEST_ROUNDS = 3


@dataclass
class Row:
    """A case, with figures that follow from one another: ratios are those of the times shown."""

    component: str
    kind: str
    name: str
    ours: float  # us, as are the others; None: could not do it
    default: float
    best: float
    best_name: str
    is_sure: bool  # rounds agree on whether ours is faster than the best

    def against(self, other):
        return other / self.ours if other and self.ours else None


def rounded(seconds):
    """Microseconds with three digits, as they are printed, so that ratios fit what is printed."""
    return float(f"{1e6 * seconds:.3g}") if seconds else None


def row_of(component, kind, name, case, preset):
    times = {s: rounded(t) for s, t in case["seconds"].items() if t and s not in case["wrong"]}
    stock = {s: t for s, t in times.items() if s not in (preset["ours"], MPICH)}
    best = min(stock, key=stock.get, default="")
    ratios = case["ours_to_best_by_round"]
    agree = not ratios or (len(ratios) >= FEWEST_ROUNDS and (max(ratios) < SAME or min(ratios) > 1 / SAME))
    return Row(component, kind, name, times.get(preset["ours"]), times.get(preset["default"]),
               stock.get(best), best.split("_")[-1],
               agree and not {preset["ours"], best} & set(case["disturbed"]))


def rows_of(document):
    presets = {p["preset"]: p for p in document["presets"]}
    rows = []
    for component, kind, cases in CASES:
        for preset, wanted, name in cases:
            for case in presets.get(preset, {"cases": []})["cases"]:
                if case["case"] == wanted and case["time"] == "seconds":
                    rows.append(row_of(component, kind, name, case, presets[preset]))
    return rows


# ---- Text --------------------------------------------------------------------------------------


def factor(value):
    if value is None:
        return "-"
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def compared(rows, other, words):
    """In how many cases ours is faster and slower than others, with the most of both. Only what is sure counts."""
    ratios = [(row.against(getattr(row, other)), row) for row in rows if row.is_sure]
    ratios = sorted(((r, row) for r, row in ratios if r), key=lambda pair: pair[0])
    if not ratios:
        return f"cannot be compared with {words}"
    faster = sum(r >= SAME for r, _ in ratios)
    slower = sum(r <= 1 / SAME for r, _ in ratios)

    def named(pair):
        return f"{factor(pair[0])} times, {pair[1].kind}: {pair[1].name}"

    text = f"is faster than {words} in {faster} of {len(ratios)} cases"
    text += f" (up to {named(ratios[-1])})" if faster else ""
    return text + (f" and slower in {slower} (down to {named(ratios[0])})" if slower else ", slower in none")


def unsure_cases(count):
    return f" {count} unsure case{'s are' if count > 1 else ' is'} left out." if count else ""


def by_component(rows):
    """The rows of each component in which it was measured."""
    return {component: [row for row in rows if row.component == component and row.ours] for component, _, _ in CASES}


def unmeasured(rows):
    for component, own in by_component(rows).items():
        if not own:
            yield f"{component} was not measured: it failed, or the time was over."


def verdict(rows):
    """A sentence for each component."""
    for component, own in by_component(rows).items():
        if own:
            yield (f"{component} {compared(own, 'default', 'your default')}; "
                   f"it {compared(own, 'best', 'the best there is')}."
                   + unsure_cases(sum(not row.is_sure for row in own)))


def table(rows):
    yield ["", "", "ours", "your", "ours is", "best", "", "ours is"]
    yield ["", "", "us", "default, us", "as fast", "there is, us", "", "as fast"]
    kind = ""
    for row in rows:
        yield [row.kind if row.kind != kind else "", row.name, microseconds(row.ours), microseconds(row.default),
               times(row.against(row.default)), microseconds(row.best), row.best_name,
               times(row.against(row.best), row.is_sure)]
        kind = row.kind


def microseconds(value):
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def times(value, is_sure=True):
    return "-" if value is None else factor(value) + (" x " if is_sure else " x?")


def columns(lines):
    lines = list(lines)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = (0, 1, 6)
    for line in lines:
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))]
        yield "  ".join(cells).rstrip()


def conditions(document):
    """How it was measured."""
    machine = document["machine"]
    lines = [c["line_ns"] for p in document["presets"] for c in p["cases"] if c["line_ns"]]
    counts = sorted({len(p["rounds"]) for p in document["presets"]})
    rounds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    line = f", a cache line takes {statistics.median(lines):.0f} ns between them" if lines else ""
    yield (f"Two processes on {machine['cpus']} processors ({machine['cpu']}){line}; "
           f"medians of {rounds} rounds, in turn. Your default is what Open MPI takes by itself.")


def warnings(document):
    """Why nothing follows from what was measured."""
    machine = document["machine"]
    if machine["others"] > QUIET:
        yield (f"WARNING: others used {machine['others']:.1f} of the {machine['cpus']} processors meanwhile. What the "
               "table says of which is faster may be wrong: measure again on a quiet machine: ./run demo measure")
    if machine["cpus"] < 2:
        yield ("WARNING: with one processor the processes take turns, which hides what they would do: "
               "measure again where there are two")


def signs(rows):
    """What signs in the table mean."""
    if not all(row.is_sure for row in rows):
        yield f"? rounds disagree on which is faster, are fewer than {FEWEST_ROUNDS}, or all were disturbed"
    if not all(row.ours and row.default and row.best for row in rows):
        yield "- not measured: it failed, or did not end in time"


# ---- Picture -----------------------------------------------------------------------------------


def picture(document, rows):
    """The table's ratios as a document that perf/plot draws."""
    ratios = [{"name": f"{row.kind}: {row.name}", "default": row.against(row.default),
               "best": row.against(row.best)} for row in rows if row.ours and row.best]
    return {"machine": document["machine"], "ratios": ratios}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    document = json.loads(Path(sys.argv[1]).read_text(encoding="ascii"))
    rows = rows_of(document)
    if not rows:
        sys.exit("summary: nothing was measured")
    doubts = list(warnings(document))
    for text in (*(doubts or verdict(rows)), *unmeasured(rows), *conditions(document)):
        print(textwrap.fill(text, 110, subsequent_indent="  "))
    print()
    for line in (*columns(table(rows)), *signs(rows)):
        print(line)
    drawn = json.dumps(picture(document, rows))
    for out in [] if doubts else sys.argv[2:]:
        subprocess.run([HERE / "plot", "-", out], input=drawn, text=True, check=True)


if __name__ == "__main__":
    main()
