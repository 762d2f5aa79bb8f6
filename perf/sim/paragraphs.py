# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""What is said below each figure: what the paper reports, what the simulation gives, why they differ. Numbers of
the latter are read from its tables."""
import textwrap
from collections import namedtuple
from math import ceil, log2

PAGE_HEAD = """# The papers' figures, simulated

`make figures` makes this page, its tables and its pictures by `perf/sim`: a simulation of hosts, adapters and links
by events in which the code that decides in production decides: the pipeline's two machines and its schedules of chunks
(`common/pipeline/core`), the sliding window of an adapter's requests (`common/transport/verbs/requests.c`), the plan
of a strided transfer (`osc_nicstride/methods/plan.c`), and the rule, the schedules and the timers of barriers
(`coll_nicbarrier/epoch`, `coll_nicbarrier/schedule`). What each cluster takes for a step stands in
`perf/sim/machines.c` and `share/links/quadrics-elan4.txt`, where it says what of that the papers say and what is of the
order of such hosts. The figures themselves are not in the papers' text that this was made from, so curves are compared
with what the text says of them. Nothing here is a measurement of this project.

The same seed gives the same tables. A barrier of 100,000 members takes about a second.
"""

TREE = "Elanlib's tree"
Figure = namedtuple("Figure", "name title x y log hidden paragraph")


def text(*sentences):
    return "\n".join(textwrap.wrap(" ".join(sentences), 119, break_long_words=False, break_on_hyphens=False))


def percent(ratio):
    return f"{100 * (ratio - 1):.0f} %" if abs(ratio - 1) >= 0.0095 else f"{100 * (ratio - 1):.1f} %"


def overhead(t, size, name):
    """What a column takes longer than the raw write."""
    return percent(t.at(size, "raw") / t.at(size, name))


def superpipeline_2(t):
    return text(
        "The paper: registering for each message takes as much as 60 % of the bandwidth around 64 KB, and long messages",
        "come to 91 % of the network's; naive copies come to 57 %. Here:",
        f"{100 * (1 - t.at(65536, 'registered') / t.at(65536, 'raw')):.0f} % are lost at 64 KiB, and at 16 MiB",
        f"{100 * t.at(1 << 24, 'registered') / t.at(1 << 24, 'raw'):.0f} % are left;",
        f"{100 * t.at(1 << 24, 'copied') / t.at(1 << 24, 'raw'):.0f} % of naive copies.",
        "The paper's formulas count a registration and a copy of one side only. So does the simulation of registrations,",
        "which both sides make at the same time; but copies before and behind a message in one piece cannot overlap.")


def superpipeline_4(t):
    short = [x for x, y in t.pairs("pipeline") if y < t.at(x, "copied") * 1.001]
    return text(
        "The paper: the pipeline with the best size of chunks, equation (3), is much faster than both naive ways, and",
        "copying is faster below 16 KB, where that size is more than the message. Here the pipeline's machines with such",
        f"chunks reach {100 * t.at(1 << 20, 'pipeline') / t.at(1 << 20, 'raw'):.0f} % of the raw write at 1 MiB and",
        f"{100 * t.at(65536, 'pipeline') / t.at(65536, 'raw'):.0f} % at 64 KiB, copying is as fast up to",
        f"{max(short, default=0):.0f} bytes, and equation (1) is",
        f"{percent(max(e / p for e, p in zip(t.column('equation 1'), t.column('pipeline'))))} above the machines at most.",
        "The chunks are shorter than the paper's, since copies within caches are faster here than it may have had.")


def superpipeline_6(cluster):
    def paragraph(t):
        from_64k = max(t.at(x, "raw") / t.at(x, "superpipe 12 KiB 1.5") for x, _ in t.pairs("raw")
                       if 65537 < x < 4 << 20)
        almost = max(t.at(x, "optimal") / t.at(x, "superpipe 12 KiB 1.5") for x, _ in t.pairs("raw")
                     if 16384 <= x < 4 << 20)
        return text(
            f"Cluster {cluster}. The paper: 15 % above the raw write at 16 KB and less than 5 % from 64 KB on, without a",
            "rendezvous; C0 = 12 KB and q = 1.5 are almost as good as optimal values. Here:",
            f"{overhead(t, 16384, 'superpipe 12 KiB 1.5')} at 16 KiB, {percent(from_64k)} at most between 64 KiB and 4 MiB;",
            f"the optimal schedule (dynamic programming) is {percent(almost)} faster at most from 16 KiB on.",
            f"From 4 MiB on memory is copied only so much faster than the network that q = 1.5 lets chunks grow too fast:",
            f"{overhead(t, 1 << 24, 'superpipe 12 KiB 1.5')} at 16 MiB, against {overhead(t, 1 << 24, 'by the equations')}",
            "with q = B_copy / B_net. Chunks in buffers of 32 KiB that are announced by messages behind a flush, in place of",
            f"flags in their blocks, are {overhead(t, 16384, '32 KiB announced')} above the raw write at 16 KiB and",
            f"{overhead(t, 1 << 20, '32 KiB announced')} at 1 MiB: two latencies, and a whole last chunk to be copied.")
    return paragraph


def superpipeline_gaps(t):
    return text(
        "The paper: the number of gaps is O(L) for chunks of one size, O(sqrt L) for the best size of each length, and",
        f"O(log L) for the superpipeline. Here 16 MiB take {t.at(1 << 24, 'superpipe 12 KiB 1.5'):.0f} chunks that grow,",
        f"which equation (7) says are {t.at(1 << 24, 'equation 7'):.1f}; {t.at(1 << 24, 'pipeline'):.0f} of the best",
        f"size; and {t.at(1 << 24, '32 KiB announced'):.0f} where no chunk is longer than a buffer of 32 KiB: bounded memory",
        "makes the number of gaps O(L) again, and what they cost is a part of the time that does not grow:",
        "the gap over what 32 KiB take.")


def strided_6(t):
    better = [x for x, y in t.pairs("HBNA") if y > t.at(x, "NIC-based")]
    worst = min(h / max(a, b) for h, a, b in zip(t.column("hybrid"), t.column("NIC-based"), t.column("HBNA")))
    return text(
        "The paper: for some message range HBNA is faster than the NIC-based method and than the vendor's, and sections",
        "over 100 KB get the peak. Here HBNA is the faster of both from",
        f"{min(better):.0f} to {max(better):.0f} bytes, and the NIC-based method has 90 % of its peak from",
        f"{min(x for x, y in t.pairs('NIC-based') if y > 0.9 * max(t.column('NIC-based'))):.0f} bytes on.",
        f"The hybrid, which is what the plan of production chooses, has {100 * worst:.0f} % of the better one at least;",
        "short sections go by messages, which need no grant, faster than by either.",
        "The vendor's method stands for a request of the host's for each row.")


def strided_7(t):
    list_gain = max(a / b for a, b in zip(t.column("NIC-based"), t.column("one by one")))
    return text(
        "The paper (left): the NIC-based method against each row as a message of its own, and (right) HBNA against copy,",
        "transmit, copy without a pipeline; how much they gain its text does not say. Here the list in the adapter is up to",
        f"{list_gain:.1f} times as fast as rows by themselves, and no slower from 1 MB on; the pipeline is level up to",
        f"{max(x for x, y in t.pairs('HBNA') if y < 1.01 * t.at(x, 'copy, send, copy')):.0f} bytes, one buffer,",
        f"and {t.at(1 << 20, 'HBNA') / t.at(1 << 20, 'copy, send, copy'):.1f} times as fast at 1 MB.")


def strided_gets(t):
    return text(
        "The paper's GET asks the other adapter for a put. An adapter of today has reads, of which it keeps 16 under way,",
        f"while writes fill a window of 128. So 1 MiB in pieces of 64 bytes comes at {t.at(64, 'reads'):.0f} MB/s by reads and",
        f"{t.at(64, 'puts of the other side'):.0f} as the other side's puts, which gather 30 pieces in a request;",
        f"of 4 KiB at {t.at(4096, 'reads'):.0f} and {t.at(4096, 'puts of the other side'):.0f}. Reads need nobody at the other",
        "side, and are what method nic does; where the target is in MPI, its messages and the pipeline are such puts.",
        "Counted on soft-RoCE (test/mpi/soft_roce with a method forced), a get of 2048 such pieces of 64 bytes, 128 KiB, is",
        "2048 requests and 4102 packets by reads, 75 packets by the pipeline, and 52 by messages.")


def barrier_5(t):
    return text(
        "The paper: 25.72 us at 16 nodes by both algorithms, 3.38 times as fast as by the host. Here",
        f"{t.at(16, 'NIC, dissemination'):.2f}, {t.at(16, 'host, dissemination') / t.at(16, 'NIC, dissemination'):.2f} times:",
        "steps were set so, from those of LANai-XP by the clock. What follows from that: pairwise exchange takes longer where",
        f"the number is no power of two, as in the paper, {t.at(12, 'NIC, pairwise') - t.at(12, 'NIC, dissemination'):.1f} us",
        "at 12 nodes.")


def barrier_6(t):
    return text(
        "The paper: 14.20 us at 8 nodes, 2.64 times as fast as by the host. Here, with the cost of a step fitted from the",
        f"paper's own model, {t.at(8, 'NIC, dissemination'):.2f} us, {t.at(8, 'host, dissemination') / t.at(8, 'NIC, dissemination'):.2f}",
        "times. That model is 14.44 us at 8 nodes: 2 % more than the paper measured.")


def barrier_7(t):
    return text(
        "The paper: 5.60 us at 8 nodes, 2.48 times as fast as Elanlib's tree; hardware broadcast takes 4.20. Here",
        f"{t.at(8, 'NIC, dissemination'):.2f} us, as by the paper's model, and the tree",
        f"{t.at(8, TREE) / t.at(8, 'NIC, dissemination'):.2f} times as long. Two nodes take",
        f"{t.at(2, 'NIC, dissemination'):.2f} us here and 2.25 in the paper, whose Tadj of -1.00 us makes its model right for",
        "many nodes and wrong for two. The paper finds pairwise exchange the faster one where the number is no power of two,",
        "since its adapter copes well with several writes to one place; here each message costs the same, and dissemination",
        "has fewer one after another.")


def barrier_8(t):
    return text(
        f"The paper's model: 38.94 us at 1024 nodes of Myrinet, and 22.13 of Quadrics. Here {t.at(1024, 'Myrinet'):.2f} and",
        f"{t.at(1024, 'Quadrics'):.2f}, in between the same, too. What a step costs was fitted from this very model, so that the",
        "totals agree is no result. What is one: without jitter and loss the production's rule and schedules send nothing",
        "else, and their steps are the model's ceil(log2 N).")


def barrier_here(t):
    return text(
        "What this project's own steps would take of more hosts than can be made here: the costs of two hosts, each on a",
        "processor of its own, as [performance.md](../performance.md) has them, in place of a line through numbers of hosts",
        f"that share two processors. 1024 hosts: {t.at(1024, 'coll/tuned'):.0f} us by coll/tuned,",
        f"{t.at(1024, 'host'):.0f} where processes take the steps, {t.at(1024, 'bpf'):.0f} where the kernel does; with 5 us",
        f"of wire and switches in each step {t.at(1024, 'coll/tuned, 5 us of wire'):.0f},",
        f"{t.at(1024, 'host, 5 us of wire'):.0f} and {t.at(1024, 'bpf, 5 us of wire'):.0f}. The wire is an assumption; the bridge that joins hosts made on one machine",
        "takes about 2.3 of the 3.2 us that a step of the kernel's is seen to take there.")


def barrier_algorithms(t):
    most = t.rows[-1][0] if t.rows[-1][0] == 2 ** int(log2(t.rows[-1][0])) else t.rows[-2][0]
    odd = max(row[0] for row in t.rows if 2 ** int(log2(row[0])) != row[0])
    return text(
        "The paper chose between dissemination and pairwise exchange, and left gather-broadcast out for its more steps.",
        f"Myrinet's costs, {most:.0f} members: {t.at(most, 'dissemination'):.0f} us by dissemination in",
        f"{ceil(log2(most)):.0f} steps, {t.at(most, 'pairwise'):.0f} by pairwise exchange,",
        f"{t.at(most, 'gather-broadcast'):.0f} by a tree of degree 4, whose root takes its children one after another;",
        f"{odd:.0f}, no power of two: {t.at(odd, 'dissemination'):.0f}, {t.at(odd, 'pairwise'):.0f} and",
        f"{t.at(odd, 'gather-broadcast'):.0f}. The tree sends two messages for each member, the others as many as there are",
        "steps.")


def barrier_jitter(t):
    most = t.rows[-1][0]
    return text(
        "Each message is late by an exponentially distributed time. A barrier waits for the latest of many, so a mean of",
        f"2 us makes {most:.0f} members take {t.at(most, '2 us'):.0f} us in place of {t.at(most, 'none'):.0f},",
        f"and one of 10 us {t.at(most, '10 us'):.0f}: more than the mean for each step, and the more the more members.",
        f"With 2 us pairwise exchange takes {t.at(most, 'pairwise, 2 us'):.0f} and gather-broadcast",
        f"{t.at(most, 'gather-broadcast, 2 us'):.0f}. The paper has no such figure.")


def barrier_loss(t):
    most = t.rows[-1][0]
    return text(
        "Lost messages, with a mean jitter of 0.5 us, are asked for again by the timers of production, 1 ms after a member",
        f"began to wait. Without loss {most:.0f} members take {t.at(most, 'none'):.0f} us. With one packet of a million lost",
        f"they take {t.at(most, '1e-6') / 1000:.1f} ms, since some of their {most * ceil(log2(most)) / 1e6:.2g} million messages",
        f"nearly always are; 1024 members {t.at(1024, '1e-6'):.0f} us. With one of a hundred they take",
        f"{t.at(most, '1e-2') / 1000:.1f} ms, and 1024 {t.at(1024, '1e-2') / 1000:.1f}. No barrier hangs, and none ends before",
        "all have entered. What a loss costs is the timer, so on a network that hardly jitters",
        "coll_nicbarrier_nack_timeout may be less.")


def armci_get(network, extra):
    def paragraph(t):
        return text(
            f"A get over {network}. {extra[0]} Here the pipelined stream has",
            f"{100 * t.at(1 << 20, 'pipelined') / t.at(1 << 20, 'zero copy'):.0f} % of zero copy at 1 MiB and",
            f"{t.at(4096, 'pipelined') / t.at(4096, 'zero copy'):.1f} times as much at 4 KiB, the baseline stream",
            f"{100 * t.at(1 << 20, 'baseline streaming') / t.at(1 << 20, 'zero copy'):.0f} % at 1 MiB; registering on both sides",
            f"at once gains {percent(t.at(4096, 'zero copy') / t.at(4096, 'zero copy, one after the other'))} at 4 KiB",
            f"and {percent(t.at(65536, 'zero copy') / t.at(65536, 'zero copy, one after the other'))} at 64 KiB. {extra[1]}")
    return paragraph


def armci_operations(network, extra):
    def paragraph(t):
        return text(
            f"Puts and gets over {network}, contiguous and strided sections. {extra} Here a put of 256 KiB is",
            f"{overhead(t, 262144, 'put')} below the raw write, a get {overhead(t, 262144, 'get')}; strided ones come to",
            f"{100 * t.at(1 << 20, 'put, strided') / t.at(1 << 20, 'put'):.0f} and",
            f"{100 * t.at(1 << 20, 'get, strided') / t.at(1 << 20, 'get'):.0f} % of the contiguous ones at 1 MiB, whose rows are",
            "too short for the fast copy. MPI's own curves of those figures are those of other libraries, and are not",
            "simulated.")
    return paragraph


def armci_12(t):
    return text(
        "All-fence: times as fast as one question after the other, by the questions that a process has under way (3, 5, 7),",
        "for one caller and for all. The paper: concurrent processing improves it, less where all processes call; and the",
        "order is random against contention. Here, 16 processes: one caller",
        f"{t.at(16, 'one, 3'):.1f}, {t.at(16, 'one, 5'):.1f}, {t.at(16, 'one, 7'):.1f} times as fast, all callers",
        f"{t.at(16, 'all, 3'):.1f}, {t.at(16, 'all, 5'):.1f}, {t.at(16, 'all, 7'):.1f};",
        f"in order {t.at(16, 'all, 7, in order'):.1f} with 7, and {t.at(16, 'all, all at once'):.1f} with all questions at",
        "once, as osc_nicstride asks them: it needs no window, since its messages have credit.")


GRAPH = ("bytes", "MB/s", "x 2")
FIGURES = [
    Figure("superpipeline-2", "Superpipeline, figure 2: what registering and copying cost", *GRAPH, (), superpipeline_2),
    Figure("superpipeline-4", "Superpipeline, figure 4: a pipeline of copies", *GRAPH, ("chunk",), superpipeline_4),
    Figure("superpipeline-6-graphene", "Superpipeline, figure 6, left", *GRAPH, (), superpipeline_6("graphene")),
    Figure("superpipeline-6-infini", "Superpipeline, figure 6, right", *GRAPH, (), superpipeline_6("infini")),
    Figure("superpipeline-gaps", "Superpipeline, section 4: gaps", "bytes", "chunks", "xy", (), superpipeline_gaps),
    Figure("strided-6", "Strided RMA, figure 6: puts of square sections", *GRAPH, (), strided_6),
    Figure("strided-7", "Strided RMA, figure 7: what the list and the pipeline gain", *GRAPH, (), strided_7),
    Figure("strided-gets", "Strided RMA, section 5.2: a get as the other side's put", "bytes of a piece", "MB/s", "xy",
           ("requests",), strided_gets),
    Figure("barrier-5", "Barrier, figure 5: Myrinet, LANai 9.1", "nodes", "us", "", (), barrier_5),
    Figure("barrier-6", "Barrier, figure 6: Myrinet, LANai-XP", "nodes", "us", "", (), barrier_6),
    Figure("barrier-7", "Barrier, figure 7: Quadrics, Elan3", "nodes", "us", "", (), barrier_7),
    Figure("barrier-8", "Barrier, figure 8: up to 1024 nodes", "nodes", "us", "x 2", (), barrier_8),
    Figure("barrier-here", "Barriers by this project's steps, up to 4096 hosts", "hosts", "us", "x 2", (), barrier_here),
    Figure("barrier-algorithms", "Barriers of many members by three algorithms", "members", "us", "x 2", (),
           barrier_algorithms),
    Figure("barrier-jitter", "Barriers of many members with jitter", "members", "us", "x 2", (), barrier_jitter),
    Figure("barrier-loss", "Barriers of many members with loss", "members", "us", "xy", (), barrier_loss),
    Figure("armci-6", "ARMCI, figure 6: gets over cLAN", *GRAPH, (), armci_get("cLAN", (
        "The paper: registering is cheap with VIA, so zero copy is the best for all but short messages, and the"
        " pipelined stream is almost as good.", ""))),
    Figure("armci-7", "ARMCI, figure 7: gets over Myrinet", *GRAPH, (), armci_get("Myrinet", (
        "The paper: zero copy is rather poor, since GM 1.5 takes long to give a registration up, and the pipelined"
        " stream is much better.", ""))),
    Figure("armci-8-9", "ARMCI, figures 8 and 9: puts and gets over cLAN", *GRAPH, (), armci_operations(
        "cLAN", "The paper: puts are the faster for medium and long requests.")),
    Figure("armci-10-11", "ARMCI, figures 10 and 11: puts and gets over Myrinet", *GRAPH, (), armci_operations(
        "Myrinet", "The paper: a contiguous put is within 5 % of GM's own, though its memory is not registered, and strided"
        " ones are further below than over VIA.")),
    Figure("armci-12", "ARMCI, figure 12: fences", "processes", "times as fast", "x 2", (), armci_12),
]
