! Copyright (c) 2026 The ompi-nic authors. All rights reserved.
! SPDX-License-Identifier: BSD-3-Clause
!
! Coarrays of Fortran 2008, whose transfers OpenCoarrays turns into MPI's one-sided ones: each image writes a
! row of its matrix, which is strided in memory, into a row of its neighbour's, and reads a column back.
!
!     apt-get install gfortran libcoarrays-openmpi-dev
!     caf -O3 -o coarray coarray.f90
!     mpirun -np 2 ./coarray
!     mpirun -np 2 --mca osc nicstride --mca coll_nicbarrier_priority 90 ./coarray
!
! The second run has ours, for the transfers and for what `sync all` is made of.
program coarray
  implicit none
  integer, parameter :: n = 256, steps = 200
  real(8), allocatable :: matrix(:, :)[:]
  real(8) :: row(n), column(n)
  integer :: next, step, j
  integer(8) :: start, end, rate
  logical :: is_right

  allocate (matrix(n, n)[*])
  next = modulo(this_image(), num_images()) + 1
  is_right = .true.
  matrix = this_image()
  sync all
  call system_clock(start, rate)
  do step = 1, steps
    row = [(real(step * n + j, 8), j = 1, n)]
    matrix(modulo(step, n) + 1, :)[next] = row
    sync all
    column(:) = matrix(:, n)[next]
    is_right = is_right .and. all(matrix(modulo(step, n) + 1, :) == row) .and. column(modulo(step, n) + 1) == row(n)
    sync all
  end do
  call system_clock(end)
  call co_min_logical(is_right)
  if (this_image() == 1) print '(a, i0, a, i0, a, f0.2, a)', merge('right', 'WRONG', is_right) // &
    ': coarray, ', num_images(), ' images, rows and columns of ', n, ' reals: a step takes ', &
    1e6 * real(end - start, 8) / rate / steps, ' us'
  if (.not. is_right) error stop

contains

  ! True where it is true on all images.
  subroutine co_min_logical(value)
    logical, intent(inout) :: value
    integer :: number
    number = merge(1, 0, value)
    call co_min(number)
    value = number == 1
  end subroutine
end program
