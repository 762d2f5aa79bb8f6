# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py: columns of a matrix, by puts into the neighbour's matrix and by messages.

    apt-get install python3-mpi4py python3-numpy
    mpirun -np 2 /usr/bin/python3 columns.py
    mpirun -np 2 --mca osc nicstride --mca pml superpipe /usr/bin/python3 columns.py

The second run has ours, for puts and for messages. Debian's own interpreter sees Debian's packages."""
import sys
from statistics import median

import numpy as np
from mpi4py import MPI

N, STEPS = 1024, 200

comm = MPI.COMM_WORLD
following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
matrix = np.zeros((N, N))
window = MPI.Win.Create(matrix, matrix.itemsize, comm=comm)
column = MPI.DOUBLE.Create_vector(N, 1, N).Commit()


def cells(rank, step):
    """What a process puts and sends in a step."""
    return np.arange(N) + N * (rank + comm.size * step)


def by_put():
    window.Put([matrix, 1, column], following, [1, 1, column])
    window.Fence()


def by_message():
    comm.Sendrecv([matrix, 1, column], following, 0, [matrix[0, 1:], 1, column], before, 0)


def run(exchange):
    """Column 0 goes into column 1 of the next process; the median time in us, and whether it was right."""
    times, right = [], True
    for step in range(STEPS):
        matrix[:, 0] = cells(comm.rank, step)
        window.Fence()
        start = MPI.Wtime()
        exchange()
        times.append(1e6 * (MPI.Wtime() - start))
        right = right and np.array_equal(matrix[:, 1], cells(before, step))
    return median(times), right


put, put_right = run(by_put)
message, message_right = run(by_message)
everywhere = comm.allreduce(put_right and message_right, MPI.LAND)
if comm.rank == 0:
    print(f"{'right' if everywhere else 'WRONG'}: mpi4py, {comm.size} processes, columns of {N} reals: "
          f"a put and a fence take {put:.2f} us, a message {message:.2f} us")
window.Free()
sys.exit(not everywhere)
