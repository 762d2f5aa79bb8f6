# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Medians and ratios of what perf/compare has run, as tables and as a document."""
import math
import os
import statistics
import sys
from dataclasses import dataclass

from presets import DEFAULT, DEFAULTS, MPICH, forced, matches

# Above this many nanoseconds for a cache line the two ranks were taking turns on one core. Such
# figures count only where there are no others; this says nothing about the component measured.
DISTURBED_NS = 1000
# What was chosen is to be so fast beside the best that could have been.
REGRET = 0.9


# ---- Reducing --------------------------------------------------------------------------------


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def speed(result, key):
    """Operations per second, or None."""
    return 1 / result[key] if result and result.get(key) else None


def quotient(a, b):
    return a / b if a and b else None


@dataclass
class Row:
    """One case, over all rounds."""

    case: str
    line_ns: float
    medians: dict  # selection -> figure in the preset's unit
    seconds: dict  # selection -> the time behind it
    wrong: set  # selections whose data was wrong in some round
    disturbed: set  # selections of which there are disturbed figures only
    copy: float
    best: str
    ours_by_round: list  # seconds
    against_best: list  # for each round, ours / best stock, as speeds
    against_default: list
    against_copy: list
    moved: str  # what ours says of how it moved the data


def is_crowded(result):
    """Where there are more ranks than processors they always take turns."""
    return (result.get("ranks") or 0) > len(os.sched_getaffinity(0))


def is_disturbed(result):
    return not is_crowded(result) and (result.get("line_ns") or 0) > DISTURBED_NS


def undisturbed(results):
    """The same list with None for the disturbed ones, or as it is where no others are left."""
    quiet = [r if r and not is_disturbed(r) else None for r in results]
    return quiet if any(quiet) else results


def reduce_case(case, rounds, selections, preset, prefix):
    """`prefix` is empty, or that of another time in the results, such as "read_" for the times in
    which the arrived data was also read."""
    key, copy_key = prefix + "seconds", "copy_" + prefix + "seconds"
    every = {s: [runs[s].results.get(case) for runs in rounds] for s in selections}
    results = {s: undisturbed(rs) for s, rs in every.items()}
    present = [r for rs in results.values() for r in rs if r]
    size = next((r.get("size", 0) for r in present), 0)
    seconds = {s: median([r.get(key) for r in rs if r]) for s, rs in results.items()}
    wrong = {s for s, rs in every.items() if any(r and not r["data_ok"] for r in rs)}
    stock = [s for s in selections if s not in (preset.ours, MPICH) and s not in wrong and seconds[s]]
    ours = results.get(preset.ours, [])

    def against(other):
        pairs = zip(ours, results.get(other, []))
        quotients = [quotient(speed(a, key), speed(b, key)) for a, b in pairs]
        return [q for q in quotients if q]

    # Each other one by itself: the best draw of each round would be too good where the machine changes.
    best = min(stock, key=lambda s: median(against(s)) or math.inf, default="")
    against_copy = [quotient(speed(a, key), speed(a, copy_key)) for a in ours]
    return Row(
        case=case,
        line_ns=median([r.get("line_ns") for r in present]),
        medians={s: preset.figure(seconds[s], size) for s in selections},
        seconds=seconds,
        wrong=wrong,
        disturbed={s for s, rs in results.items() if any(r and is_disturbed(r) for r in rs)},
        copy=preset.figure(median([r.get(copy_key) for r in present]), size),
        best=best,
        ours_by_round=[r[key] for r in ours if r and r.get(key)],
        against_best=against(best),
        against_default=against(DEFAULTS[preset.ours.split("/")[0]]),
        against_copy=[q for q in against_copy if q],
        moved=next((r["moved"] for r in reversed(ours) if r and "moved" in r), ""),
    )


# ---- Output ----------------------------------------------------------------------------------


def number(value):
    if value is None:
        return "-"
    digits = next((d for limit, d in ((1000, 0), (100, 1), (1, 2)) if value >= limit), 3)
    return f"{value:.{digits}f}"


def ratio(values):
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def print_columns(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        print("  ".join([first] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]))


def marks(row, selection):
    return ("~" if selection in row.disturbed else "") + ("!" if selection in row.wrong else "")


def print_table(preset, rows, selections, rounds, note):
    copies = any(row.copy for row in rows)
    print(f"\n{preset.title}{note}: {preset.unit}, median of {len(rounds)} rounds")
    header = ["case", "line ns", *selections] + (["copy"] if copies else [])
    header += ["best other", "ours/best (range)"] + (["ours/copy (range)"] if copies else [])
    table = [header]
    for row in rows:
        cells = [row.case, number(row.line_ns)]
        cells += [number(row.medians[s]) + marks(row, s) for s in selections]
        cells += [number(row.copy)] if copies else []
        cells += [row.best or "-", ratio(row.against_best)]
        cells += [ratio(row.against_copy)] if copies else []
        table.append(cells)
    print_columns(table)
    if any(row.wrong for row in rows):
        print("! moved wrong data, is never the best")
    if any(row.disturbed for row in rows):
        print("~ no undisturbed round, see the cache-line latencies")
    print_summary(rows)


def print_summary(rows):
    """ours/best over all cases of a table."""
    ratios = sorted((statistics.median(r.against_best), r.case) for r in rows if r.against_best)
    if ratios:
        values = [value for value, _ in ratios]
        below = ", ".join(f"{sum(v < limit for v in values)} below {limit}" for limit in (0.9, 1.0))
        print(f"ours/best over {len(values)} cases: median {statistics.median(values):.2f}, "
              f"smallest {values[0]:.2f} ({ratios[0][1]}), {below}")


def gained(ratios):
    """What part of the others' time is gained, from quotients of speeds."""
    return f"{100 - 100 / statistics.median(ratios):.0f} %" if ratios else "-"


def print_gains(preset, tables, rounds):
    """Communication by itself and the whole step against Open MPI's choice and the best other."""
    print(f"\n{preset.title}: us, median of {len(rounds)} rounds; what part of the time of Open MPI's own "
          "choice (default) and of the best other is gained")
    table = [["case", "line ns", *["comm.: default", "best", "ours", "of default", "of best", "which"],
              *["whole: default", "best", "ours", "of default", "of best"], "moved by"]]
    for comm, whole in zip(tables["comm_"], tables[""]):
        cells = [comm.case, number(comm.line_ns)]
        for row in (comm, whole):
            best = row.medians.get(row.best)
            cells += [number(row.medians.get(DEFAULT)) + marks(row, DEFAULT), number(best),
                      number(row.medians.get(preset.ours)) + marks(row, preset.ours),
                      gained(row.against_default), gained(row.against_best)]
            cells += [row.best or "-"] if row is comm else []
        table.append([*cells, comm.moved or "-"])
    print_columns(table)
    for name, prefix in (("communication", "comm_"), ("whole steps", "")):
        for other in ("default", "best"):
            ratios = [statistics.median(q) for row in tables[prefix]
                      if (q := getattr(row, "against_" + other))]
            if ratios:
                print(f"gained of {name} against {other}: median {gained(ratios)}, least "
                      f"{gained([min(ratios)])}, most {gained([max(ratios)])}")


def print_regret(rows):
    """Where what was chosen is slower than one of the ways that could have been."""
    worst = sorted(((statistics.median(r.against_best), r) for r in rows if r.against_best),
                   key=lambda pair: pair[0])
    for value, row in ((v, r) for v, r in worst if v < REGRET):
        print(f"regret: {row.case} {value:.2f} of {row.best}")
    return [value for value, _ in worst]


def print_regrets(values):
    """The same over all presets."""
    if values:
        print(f"\nWhat is chosen against the best of what could have been forced, {len(values)} cases: mean "
              f"{statistics.mean(values):.2f}, {sum(v < REGRET for v in values)} below {REGRET}, "
              f"least {min(values):.2f}")


PARTS = {"computing": "compute_seconds", "puts": "put_seconds", "synchronising": "sync_seconds"}


def print_parts(preset, rounds, selections, cases):
    """What a step of rank 0 is made of."""
    table = [["case", "component", *PARTS, "sum"]]
    for case in cases:
        for s in selections:
            results = undisturbed([runs[s].results.get(case) for runs in rounds])
            times = [median([r.get(key) for r in results if r]) for key in PARTS.values()]
            if None not in times:
                times = [1e6 * t for t in times]
                table.append([case, s, *map(number, times), number(sum(times))])
    if len(table) > 1:
        print(f"\n{preset.title}, what it is made of on rank 0: us, medians")
        print_columns(table)


def print_lines(rounds, selections):
    """Cache-line latency of each launch: it says which rounds are comparable, and with what."""
    table = [["cache line, ns one way", *(str(r + 1) for r in range(len(rounds)))]]
    disturbed = False
    for s in selections:
        values = [runs[s].line_ns() for runs in rounds]
        crowded = any(is_crowded(r) for runs in rounds for r in runs[s].results.values())
        disturbed = disturbed or not crowded and any(v and v > DISTURBED_NS for v in values)
        table.append(["  " + s, *(f"{v:.0f}" if v else "-" for v in values)])
    print_columns(table)
    if disturbed:
        print("  (microseconds: the ranks shared a core, the machine was busy)")


def print_failures(rounds, selections):
    for s in selections:
        failures = [runs[s].failure for runs in rounds if runs[s].failure]
        if failures:
            print(f"  {s}: {failures[0]}")


def show(preset, rounds, selections, patterns, reads, regrets):
    """Prints all about a preset; returns its rows by kind of measurement. What was chosen against what could have
    been forced, case by case, goes to `regrets`."""
    cases = [c for c in preset.cases() if matches(c, patterns)]
    tables = {}
    for prefix, note in preset.times(reads):
        rows = [reduce_case(c, rounds, selections, preset, prefix) for c in cases]
        tables[prefix] = [row for row in rows if any(row.medians.values())]
        if tables[prefix] and (not preset.gains or selections == forced(preset.ours)):
            print_table(preset, tables[prefix], selections, rounds, note)
            if selections == forced(preset.ours):
                regrets += print_regret(tables[prefix])
    if preset.gains and any(tables.values()):
        print_gains(preset, tables, rounds)
    if preset.parts:
        print_parts(preset, rounds, selections, cases)
    if not any(tables.values()):
        print(f"\n{preset.title}: nothing could be measured")
    print_lines(rounds, selections)
    print_failures(rounds, selections)
    sys.stdout.flush()
    return tables


def document(name, preset, rounds, tables):
    """What the JSON file says about a preset."""
    rows = [
        {
            "case": row.case,
            "reads": prefix == "read_",
            "time": prefix + "seconds",
            "line_ns": row.line_ns,
            "medians": row.medians,
            "wrong": sorted(row.wrong),
            "disturbed": sorted(row.disturbed),
            "copy": row.copy,
            "best_stock": row.best,
            "seconds": row.seconds,
            "ours_to_best": median(row.against_best),
            "ours_to_best_by_round": row.against_best,
            "ours_seconds_by_round": row.ours_by_round,
            "ours_to_default": median(row.against_default),
            "ours_to_copy": median(row.against_copy),
            "moved": row.moved,
        }
        for prefix, table in tables.items()
        for row in table
    ]
    raw = [{s: run.document() for s, run in runs.items()} for runs in rounds]
    head = {"preset": name, "title": preset.title, "unit": preset.unit, "ours": preset.ours,
            "default": DEFAULTS[preset.ours.split("/")[0]]}
    return {**head, "cases": rows, "rounds": raw}
