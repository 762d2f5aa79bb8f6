# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Packets that come late, and twice: the kernel of a test machine need not have netem."""

import heapq
import itertools
import os
import random
import select
import socket
import time

from hostlib import linux

SECONDS = 0.005
ROOM = 8 << 20
SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_OUTGOING = 4
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3


def make(bridge):
    """A port of the bridge at which nothing comes but what is late. What is sent to `held` is kept,
    and comes back from there; the bridge learns nothing by it."""
    linux.tool("ip", "link", "add", "held", "type", "veth", "peer", "name", "holder")
    linux.tool("ip", "link", "set", "holder", "up")
    linux.tool("ip", "link", "set", "held", "master", bridge, "up")
    linux.tool("ip", "link", "set", "held", "type", "bridge_slave", "learning", "off", "flood",
               "off", "mcast_flood", "off", "bcast_flood", "off")
    pid = os.fork()
    if pid == 0:
        try:
            linux.die_with_parent(None)
            hold(open_socket())
        finally:
            os._exit(1)


def open_socket():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # With what the kernel knows of a packet: its checksum may not be there yet.
    s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
    s.bind(("holder", ETH_P_ALL))
    s.setblocking(False)
    return s


def take(s):
    """The next one, or None."""
    try:
        packet, address = s.recvfrom(1 << 17)
        return packet if address[2] != PACKET_OUTGOING else b""
    except BlockingIOError:
        return None


def hold(s):
    """For ever. Those that are due at the same time go in the order of their numbers."""
    late, number = [], itertools.count()
    while True:
        left = max(0, late[0][0] - time.monotonic()) if late else None
        select.select([s], [], [], left)
        now = time.monotonic()
        while (packet := take(s)) is not None:
            for _ in range(random.choice((1, 2)) if packet else 0):
                heapq.heappush(late, (now + random.uniform(0, SECONDS), next(number), packet))
        while late and late[0][0] <= now:
            try:
                s.send(heapq.heappop(late)[2])
            except OSError:
                pass  # lost, as in any network
