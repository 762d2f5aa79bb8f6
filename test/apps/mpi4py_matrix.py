# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""A matrix spread by rows over the ranks, transposed, tiled and summed by one-sided operations of
mpi4py with derived datatypes, and compared with numpy's answer."""
import sys

import numpy as np
from mpi4py import MPI

ROWS = 120  # of each rank


def matrix(n):
    return np.arange(n * n, dtype="d").reshape(n, n)


def window_of(mine, comm):
    return MPI.Win.Create(mine, mine.itemsize, comm=comm)


def transpose(comm, n):
    """Each rank puts its rows as columns of all others: a vector whose blocks are one element."""
    r0 = comm.rank * ROWS
    mine = matrix(n)[r0:r0 + ROWS].copy()
    out = np.zeros((ROWS, n))
    win = window_of(out, comm)
    column = MPI.DOUBLE.Create_vector(ROWS, 1, n).Create_resized(0, MPI.DOUBLE.size).Commit()
    tile = MPI.DOUBLE.Create_subarray([ROWS, n], [ROWS, ROWS], [0, 0]).Commit()
    win.Fence()
    for rank in range(comm.size):
        part = np.frombuffer(mine, dtype="d")[rank * ROWS:]
        win.Put([part, 1, tile], rank, [r0, ROWS, column])
    win.Fence()
    win.Free()
    return np.array_equal(out, matrix(n).T[r0:r0 + ROWS])


def tiles(comm, n):
    """Gets a tile of each rank's rows under a shared lock, with other strides here and there."""
    mine = matrix(n)[comm.rank * ROWS:][:ROWS].copy()
    win = window_of(mine, comm)
    comm.Barrier()
    good = True
    for rank in range(comm.size):
        rows, columns, top, left = ROWS // 3, n // 4 + rank, 7, 5 + rank
        there = MPI.DOUBLE.Create_subarray([ROWS, n], [rows, columns], [top, left]).Commit()
        here = MPI.DOUBLE.Create_vector(rows, columns, columns + 3).Commit()
        got = np.full((rows, columns + 3), -1.0)
        win.Lock(rank, MPI.LOCK_SHARED)
        win.Get([got, 1, here], rank, [0, 1, there])
        win.Unlock(rank)
        first = rank * ROWS + top
        want = matrix(n)[first:first + rows, left:left + columns]
        good &= np.array_equal(got[:, :columns], want) and bool((got[:, columns:] == -1.0).all())
    comm.Barrier()
    win.Free()
    return good


def sums(comm, n):
    """All ranks add to every third column of all ranks, and draw numbers from one counter."""
    mine = np.zeros((ROWS, n))
    win = window_of(mine, comm)
    third = MPI.DOUBLE.Create_vector(ROWS * n // 3, 1, 3).Commit()
    ones = np.full(ROWS * n // 3, comm.rank + 1.0)
    win.Lock_all()
    for rank in range(comm.size):
        win.Accumulate([ones, MPI.DOUBLE], rank, [0, 1, third], MPI.SUM)
    win.Flush_all()
    one, drawn = np.ones(1), np.zeros(1)
    numbers = []
    for _ in range(100):
        win.Fetch_and_op(one, drawn, 0, 1, MPI.SUM)  # an element between those of above
        win.Flush(0)
        numbers.append(drawn[0])
    win.Unlock_all()
    comm.Barrier()
    flat = mine.reshape(-1)
    good = bool((flat[::3] == comm.size * (comm.size + 1) / 2).all()) and bool((flat[2::3] == 0).all())
    everyone = sorted(x for part in comm.allgather(numbers) for x in part)
    win.Free()
    return good and everyone == list(range(100 * comm.size))


def main():
    comm = MPI.COMM_WORLD
    n = ROWS * comm.size
    wrong = [f.__name__ for f in (transpose, tiles, sums)
             if not comm.allreduce(f(comm, n), MPI.LAND)]
    if comm.rank == 0:
        print("wrong: " + ", ".join(wrong) if wrong else
              "right: transpose, tiles and sums of a matrix in Python")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
