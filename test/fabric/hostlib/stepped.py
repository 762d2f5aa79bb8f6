# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of barriers that are stepped in the kernel (nicbarrier-bpf)."""

import os
import re
import shutil
import subprocess
import tempfile
import uuid

from hostlib import cases
from hostlib.jobs import BARRIERS_RIGHT, BY_DATAGRAMS, FOUR, FOUR_RANKS, TWO, dies

STEPPED = BY_DATAGRAMS + ["--mca", "coll_nicbarrier_stepper", "bpf"]
TWO_JOBS = """#!/bin/sh
"$REAL_MPIRUN" "$@" & first=$!
"$REAL_MPIRUN" "$@" && wait $first
"""
ROUNDS_RIGHT = r"rounds: \d+ checks passed, 0 failed"
KEPT = ["kept"]
LATE = ["--loss", "5", "--reorder", "10", "--counters"]
AS_USERS = """#!/bin/sh
for user in $USERS; do
    setpriv --reuid=$user --regid=$user --clear-groups env HOME=/ "$REAL_MPIRUN" "$@" &
    jobs="$jobs $!"
done
for job in $jobs; do wait $job || exit; done
"""


def loaded(build, hosts="all"):
    """The options with which these hosts step barriers in the kernel."""
    if not os.path.exists(build.bpf):
        raise cases.Skip("this build is without nicbarrier-bpf")
    return ["--setup", "%s:%s load eth0" % (hosts, build.bpf)]


def stepped(build, options, engine=STEPPED, hosts=TWO):
    """Barriers are right, the kernel has taken messages of them, and nothing is left."""
    counted = ["--mca", "coll_nicbarrier_verbose", "2"]
    return build.run(hosts + options, engine + counted + [build.barriers]).ends_with(0).says(
        BARRIERS_RIGHT).says(r"stepper_taken [1-9]").says_not("left to the module below"
        ).leaves_nothing()


def bpf_hosts(build):
    """2, 4 and 8 hosts, and several processes on a host."""
    for hosts in (TWO, FOUR, ["-n", "8"], FOUR_RANKS):
        stepped(build, loaded(build) + ["--do", "1@/ready/=%s status eth0" % build.bpf], hosts=hosts)


def bpf_some(build):
    """Of two and four hosts one has no such programs, or one alone has."""
    for hosts in (TWO, FOUR):
        stepped(build, loaded(build, "2"), BY_DATAGRAMS, hosts)
    most = [word for host in "124" for word in loaded(build, host)]
    stepped(build, most, BY_DATAGRAMS, FOUR)
    build.run(TWO + loaded(build, "2"), STEPPED + ["--mca", "coll_nicbarrier_setup_call", "1",
                                                   build.farewell]).ends_with(0).says(
        r"left to the module below: nicbarrier-bpf is not loaded on eth0 \(rank 0 on host1\)")


def bpf_loss(build):
    """5 % of all packets are lost."""
    for hosts in (TWO, FOUR, FOUR_RANKS):
        stepped(build, loaded(build) + ["--loss", "5", "--counters"], hosts=hosts).says(
            r"lost [1-9]\d* packets")


def bpf_pauses(build):
    """A rank is stopped for 3 s, a cable is out for 1 s, an interface is down for 1 s."""
    down = "1@/ready/=ip link set eth0 down; sleep 1; ip link set eth0 up"
    for hosts in (FOUR, FOUR_RANKS):
        stepped(build, loaded(build) + ["--stop", "1@/ready/:3"], hosts=hosts)
        stepped(build, loaded(build) + ["--cut", "2@/ready/:1"], hosts=hosts)
        stepped(build, loaded(build) + ["--do", down], hosts=hosts)


def bpf_killed(build):
    """A rank is killed: the job ends."""
    for options in (TWO, FOUR_RANKS):
        dies(build.run(options + loaded(build) + ["--kill", "1@/ready/"],
                       STEPPED + [build.barriers]))


def bpf_unloaded(build):
    """The programs go away under a running job: the processes step on."""
    for hosts in (TWO, FOUR, FOUR_RANKS):
        away = ["--do", "1@/ready/=%s unload eth0" % build.bpf]
        stepped(build, loaded(build) + away, BY_DATAGRAMS, hosts)
    both = away + ["--do", "2@/ready/=%s unload eth0" % build.bpf]
    stepped(build, loaded(build) + both, BY_DATAGRAMS)
    killed = ["--do", "1@/ready/=kill -9 `pidof nicbarrier-bpf`"]
    stepped(build, loaded(build) + killed, BY_DATAGRAMS)


def bpf_service_stopped(build):
    """A service that does not answer is waited for some seconds: the processes step."""
    stop = ["--setup", "1:kill -STOP `pidof nicbarrier-bpf`"]
    build.run(TWO + loaded(build) + stop, BY_DATAGRAMS + [build.barriers]).ends_with(0).says(
        BARRIERS_RIGHT).leaves_nothing()


def rounds(build, options, hosts=TWO, engine=STEPPED, mode=(), until="1@/ready/+2=touch "):
    """Barriers while something is done, until a file says that it is over: the last word of the
    command `until`. All is right."""
    name = "onic-rounds-" + uuid.uuid4().hex
    try:
        run = build.run(hosts + options + ["--do", until + name],
                        engine + [build.rounds, name] + list(mode))
    finally:
        if os.path.exists(name):
            os.unlink(name)
    return run.ends_with(0).says(ROUNDS_RIGHT).leaves_nothing()


def bpf_late(build):
    """Communicators are freed while packets fly: some are lost, others late and doubled."""
    for hosts in (TWO, FOUR):
        rounds(build, loaded(build) + LATE, hosts).says(
            r"lost [1-9]\d* packets, [1-9]\d* were late").says_not("left to the module below")


def bpf_late_pauses(build):
    """The same, and a rank is stopped, or a cable is out, for 1 s; the programs go away."""
    for fault in (["--stop", "1@/ready/:1"], ["--cut", "2@/ready/:1"]):
        rounds(build, loaded(build) + LATE + fault, FOUR)
    away = ["--do", "1@/ready/=%s unload eth0" % build.bpf]
    rounds(build, loaded(build) + LATE + away, FOUR, BY_DATAGRAMS)


def bpf_late_killed(build):
    """A rank is killed while packets are lost, late and doubled: the job ends."""
    dies(build.run(FOUR + loaded(build) + LATE + ["--kill", "1@/ready/"], STEPPED + [build.barriers]))


class Launcher:
    """A script in place of mpirun, which has its name in REAL_MPIRUN."""

    def __init__(self, script):
        self.script = script

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="onic-faults-")
        path = os.path.join(self.directory, "launch")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.script)
        os.chmod(path, 0o755)
        real = shutil.which(os.environ.get("MPIRUN") or "mpirun")
        return ["--mpirun", path, "--env", "1:REAL_MPIRUN=" + real]

    def __exit__(self, *_):
        shutil.rmtree(self.directory)


def bpf_two_jobs(build):
    """Two jobs at once share an interface."""
    with Launcher(TWO_JOBS) as both:
        run = stepped(build, loaded(build) + both)
        run.need(len(re.findall(BARRIERS_RIGHT, run.output)) == 2, "not two jobs have ended well")


def as_users(build, access, users, job):
    """A job of each user at once; who is not root works in a directory of everybody."""
    if subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x",
                       build.barriers], check=False).returncode != 0:
        raise cases.Skip("other users do not see this build tree")
    everybody = tempfile.mkdtemp(prefix="onic-faults-", dir=".")
    os.chmod(everybody, 0o1777)
    setup = ["--setup", "all:%s load --users %s eth0" % (build.bpf, access)]
    try:
        with Launcher(AS_USERS) as launcher:
            return build.run(TWO + setup + launcher + ["--env", "1:USERS=" + users],
                             ["--wdir", os.path.abspath(everybody)] + job).ends_with(0)
    finally:
        shutil.rmtree(everybody)


def bpf_users(build):
    """Jobs of two users at once, neither of whom is root; a user who may not use the programs."""
    run = as_users(build, "all", "1 65534", STEPPED + [build.barriers]).says_not(
        "left to the module below").leaves_nothing()
    run.need(len(re.findall(BARRIERS_RIGHT, run.output)) == 2, "not two jobs have ended well")
    few = ["--mca", "coll_nicbarrier_setup_call", "1", build.farewell]
    as_users(build, "daemon", "65534", STEPPED + few).says(
        "left to the module below: this user may not use nicbarrier-bpf here")
    as_users(build, "daemon", "65534", BY_DATAGRAMS + few).says_not("left to the module below")


def bpf_forged(build):
    """A million packets like those that were overheard, each with something wrong."""
    run = rounds(build, loaded(build), until="2@/ready/=%s eth0 10.99.0.1 1000000 " % build.forge).says(
        "forge: 1000000 packets").says_not("left to the module below")
    grown = int(re.search(r"grown by (\d+) KiB", run.output)[1])
    run.need(grown < 4096, "the ranks have grown by %d KiB" % grown)


# Makes one more interface of a host, over the same wire.
MORE = "n=`hostname | tr -d a-z`; ip link add link eth0 name eth1 address 02:00:00:00:01:0$n " \
    "type macvlan mode bridge && ip addr add 10.98.1.$n/24 dev eth1 && ip link set eth1 up"

# Barriers by that; what Open MPI itself has by TCP stays at eth0.
OVER_ETH1 = BY_DATAGRAMS + ["--mca", "coll_nicbarrier_interface", "eth1", "--mca", "btl_tcp_if_include", "eth0",
                            "--mca", "oob_tcp_if_include", "eth0"]


def second(build):
    """The options for hosts that step barriers at eth1."""
    loaded(build)
    return ["--setup", "all:%s && %s load eth1" % (MORE, build.bpf)]


def bpf_interface(build):
    """An interface is removed under the job, and another one is made in its place."""
    again = "1@/ready/=ip link del eth1; sleep 2; %s && %s load eth1 && sleep 2 && " \
        "%s unload eth1; touch " % (MORE, build.bpf, build.bpf)
    for hosts in (TWO, FOUR):
        run = rounds(build, second(build), hosts, OVER_ETH1, KEPT, again)
        run.need(len(re.findall("loaded on eth1", run.output)) == int(hosts[1]) + 1,
                 "it was not loaded again")


def bpf_computing(build):
    """Nobody calls MPI behind a nonblocking barrier: the kernel completes it."""
    for hosts in (TWO, FOUR):
        build.run(hosts + loaded(build), STEPPED + [build.computing]).ends_with(0).says(
            "were complete at the first look, by the kernel").leaves_nothing()


CASES = [
    bpf_hosts, bpf_some, bpf_loss, bpf_pauses, bpf_killed, bpf_unloaded, bpf_service_stopped,
    bpf_two_jobs, bpf_users, bpf_forged, bpf_late, bpf_late_pauses, bpf_late_killed, bpf_interface,
    bpf_computing]
