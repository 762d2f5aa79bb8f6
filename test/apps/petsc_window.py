# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""PETSc's star forest over MPI windows: gathers values of other ranks and sums back into them.

PETSc describes what each pair of ranks exchanges by indexed datatypes on both sides. All its kinds
of synchronisation are used; with Open MPI it offers one kind of window only.
"""
import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)
from mpi4py import MPI  # pylint: disable=wrong-import-position
from petsc4py import PETSc  # pylint: disable=wrong-import-position

ROOTS = 4000
LEAVES = 3000


def owners_and_indices(rank, size):
    """Leaf i of a rank is a root of rank owner[i], none of them twice: MPI forbids an accumulate
    that names an element twice."""
    rng = np.random.default_rng(1000 + rank)
    chosen = rng.permutation(ROOTS * size)[:LEAVES]
    return chosen // ROOTS, chosen % ROOTS


def value(owner, index):
    return owner * 1000.0 + index


def sums(rank, size):
    """What the roots of this rank become: the leaf's value plus the leaf's rank, over all leaves."""
    total = np.zeros(ROOTS)
    for r in range(size):
        owner, index = owners_and_indices(r, size)
        mine = index[owner == rank]
        np.add.at(total, mine, value(rank, mine) + r)
    return total


def exchange(comm, sync):
    """One gather and one sum; says whether both are right here."""
    PETSc.Options()["sf_window_sync"] = sync
    owner, index = owners_and_indices(comm.rank, comm.size)
    forest = PETSc.SF().create(comm)
    forest.setType("window")
    forest.setFromOptions()
    forest.setGraph(ROOTS, None, np.column_stack((owner, index)).astype(PETSc.IntType))
    root = value(comm.rank, np.arange(ROOTS))
    leaf = np.full(LEAVES, -1.0)
    forest.bcastBegin(MPI.DOUBLE, root, leaf, MPI.REPLACE)
    forest.bcastEnd(MPI.DOUBLE, root, leaf, MPI.REPLACE)
    gathered = np.array_equal(leaf, value(owner, index))
    total = np.zeros(ROOTS)
    leaf += comm.rank
    forest.reduceBegin(MPI.DOUBLE, leaf, total, MPI.SUM)
    forest.reduceEnd(MPI.DOUBLE, leaf, total, MPI.SUM)
    forest.destroy()
    return gathered and np.array_equal(total, sums(comm.rank, comm.size))


def main():
    comm = MPI.COMM_WORLD
    kinds = ("fence", "active", "lock")
    wrong = [sync for sync in kinds if not comm.allreduce(exchange(comm, sync), MPI.LAND)]
    if comm.rank == 0:
        print("wrong: " + ", ".join(wrong) if wrong else
              "right: star forests synchronised by " + ", ".join(kinds))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
