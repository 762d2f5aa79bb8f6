! Copyright (c) 2026 The ompi-nic authors. All rights reserved.
! SPDX-License-Identifier: BSD-3-Clause
!
! A halo exchange in Fortran with the module mpi_f08. Each process has a slab of a matrix, some of its rows,
! which are strided in Fortran, and puts its first and last row into the halos of its two neighbours. A flush
! and a barrier end the exchange.
!
!     apt-get install gfortran libopenmpi-dev
!     mpifort -O3 -o halo_mpi_f08 halo_mpi_f08.f90
!     mpirun -np 2 ./halo_mpi_f08
!     mpirun -np 2 --mca osc nicstride --mca coll_nicbarrier_priority 90 ./halo_mpi_f08
!
! The second run has ours, for the puts and for the barrier.
program halo_mpi_f08
  use mpi_f08
  implicit none
  integer, parameter :: rows = 64, columns = 1024, steps = 400
  type(MPI_Win) :: win
  type(MPI_Datatype) :: row
  ! Rows 0 and rows + 1 are the halo.
  real(8), allocatable, asynchronous :: field(:, :)
  real(8) :: seconds(steps), start, mine, slowest
  integer :: rank, ranks, above, below, step, j
  logical :: is_right, all_right

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  above = modulo(rank - 1, ranks)
  below = modulo(rank + 1, ranks)
  allocate (field(0:rows + 1, columns), source=0.0_8)
  call MPI_Win_create(field, 8_MPI_ADDRESS_KIND * size(field), 8, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPI_Type_vector(columns, 1, rows + 2, MPI_REAL8, row)
  call MPI_Type_commit(row)

  is_right = .true.
  call MPI_Win_lock_all(0, win)
  do step = 1, steps
    field(1, :) = [(value(rank, 1, j, step), j = 1, columns)]
    field(rows, :) = [(value(rank, rows, j, step), j = 1, columns)]
    start = MPI_Wtime()
    call MPI_Put(field(1, 1), 1, row, above, int(rows + 1, MPI_ADDRESS_KIND), 1, row, win)
    call MPI_Put(field(rows, 1), 1, row, below, 0_MPI_ADDRESS_KIND, 1, row, win)
    call MPI_Win_flush_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    seconds(step) = MPI_Wtime() - start
    call MPI_Win_sync(win)
    do j = 1, columns
      is_right = is_right .and. field(0, j) == value(above, rows, j, step) &
        .and. field(rows + 1, j) == value(below, 1, j, step)
    end do
    ! Nobody puts the next rows before these have been read.
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  call MPI_Win_unlock_all(win)

  mine = median(seconds)
  call MPI_Allreduce(is_right, all_right, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
  call MPI_Reduce(mine, slowest, 1, MPI_REAL8, MPI_MAX, 0, MPI_COMM_WORLD)
  if (rank == 0) print '(a, i0, a, i0, a, f0.2, a)', merge('right', 'WRONG', all_right) // &
    ': halo of mpi_f08, ', ranks, ' processes, rows of ', columns, ' reals: an exchange takes ', 1e6 * slowest, ' us'
  call MPI_Type_free(row)
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (.not. all_right) stop 1

contains

  ! What stands in row i and column j of a process in a step.
  pure real(8) function value(rank, i, j, step)
    integer, intent(in) :: rank, i, j, step
    value = step + 1e-3_8 * (rows * rank + i) + 1e4_8 * j
  end function

  ! The middle one, by counting those before it.
  pure real(8) function median(values)
    real(8), intent(in) :: values(:)
    integer :: i
    median = values(1)
    do i = 1, size(values)
      median = values(i)
      if (count(values < median) <= size(values) / 2 .and. count(values <= median) > size(values) / 2) return
    end do
  end function
end program
