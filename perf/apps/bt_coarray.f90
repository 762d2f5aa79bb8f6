! Copyright (c) 2026 The ompi-nic authors. All rights reserved.
! SPDX-License-Identifier: BSD-3-Clause
!
! The exchanges of NAS BT by coarrays, as the strided-RMA paper ran them (section 6.3): a diagonal
! multi-partition of a grid with five numbers at each point, whose faces, two points deep, are put into the
! neighbours' cells; and three sweeps, in which each cell puts its last plane to the next one. Images: a
! square number. What has come is checked, ghost by ghost.
!
!     apt-get install gfortran libcoarrays-openmpi-dev
!     caf -O3 -o bt_coarray perf/apps/bt_coarray.f90
!     mpirun -np 4 ./bt_coarray 64 50
!     mpirun -np 4 --mca osc nicstride --mca coll_nicbarrier_priority 90 ./bt_coarray 64 50
!
! The first number are the points along each dimension, the second the steps.
program bt_coarray
  implicit none
  integer, parameter :: vars = 5, deep = 2
  real(8), allocatable :: u(:, :, :, :, :)[:], plane(:, :, :, :)[:]
  integer :: n, steps, q, m, rank, step, bad
  integer(8) :: start, faces, sweeps, now, rate

  n = argument(1, 64)
  steps = argument(2, 50)
  q = nint(sqrt(real(num_images())))
  if (q * q /= num_images()) error stop 'bt_coarray: the images are no square number'
  n = n / q * q
  m = n / q
  if (m < deep) error stop 'bt_coarray: cells of two points along each dimension at least'
  rank = this_image() - 1
  allocate (u(vars, 1 - deep:m + deep, 1 - deep:m + deep, 1 - deep:m + deep, q)[*])
  allocate (plane(vars, m, m, q)[*])
  call fill
  sync all

  faces = 0
  sweeps = 0
  bad = 0
  do step = 1, steps
    call system_clock(start, rate)
    call copy_faces
    sync all
    call system_clock(now)
    faces = faces + now - start
    if (step == 1) bad = bad + wrong_ghosts()
    call system_clock(start)
    bad = bad + sweep(1) + sweep(2) + sweep(3)
    call system_clock(now)
    sweeps = sweeps + now - start
  end do
  call co_sum(bad)
  if (rank == 0) then
    if (bad == 0) print '(a, i0, a, f0.1, a, f0.1, a)', 'right: ', n, ' points, a step ', &
      1e6 * real(faces) / rate / steps, ' us for faces, ', 1e6 * real(sweeps) / rate / steps, ' us for sweeps'
    if (bad /= 0) print '(a, i0, a)', 'wrong: ', bad, ' numbers'
  end if
  if (bad /= 0) error stop 1

contains

  integer function argument(which, otherwise)
    integer, intent(in) :: which, otherwise
    character(len=32) :: text

    argument = otherwise
    if (command_argument_count() < which) return
    call get_command_argument(which, text)
    read (text, *) argument
  end function argument

  !> Where my cell is, from 0 on.
  function place(cell) result(at)
    integer, intent(in) :: cell
    integer :: at(3)

    at = [modulo(mod(rank, q) + cell - 1, q), modulo(rank / q - cell + 1, q), cell - 1]
  end function place

  !> Whose cell that is, and its number there; image 0 outside of the grid.
  subroutine owner(at, image, cell)
    integer, intent(in) :: at(3)
    integer, intent(out) :: image, cell

    image = 0
    cell = at(3) + 1
    if (all(at >= 0) .and. all(at < q)) image = modulo(at(2) + at(3), q) * q + modulo(at(1) - at(3), q) + 1
  end subroutine owner

  !> What stands at a point of the grid.
  real(8) function value_at(var, x, y, z)
    integer, intent(in) :: var, x, y, z

    value_at = var + 10d0 * (x + n * (y + real(n, 8) * z))
  end function value_at

  subroutine fill
    integer :: cell, at(3), x, y, z, v

    u = -1
    do cell = 1, q
      at = place(cell) * m
      do z = 1, m
        do y = 1, m
          do x = 1, m
            u(:, x, y, z, cell) = [(value_at(v, at(1) + x, at(2) + y, at(3) + z), v=1, vars)]
          end do
        end do
      end do
    end do
  end subroutine fill

  !> The first and the last points of a face: of mine that I put (`ghosts` false), or where they go.
  subroutine face(d, side, ghosts, low, high)
    integer, intent(in) :: d, side
    logical, intent(in) :: ghosts
    integer, intent(out) :: low(3), high(3)

    low = 1
    high = m
    if ((side > 0) .neqv. ghosts) then
      low(d) = merge(m + 1, m - deep + 1, ghosts)
    else
      low(d) = merge(1 - deep, 1, ghosts)
    end if
    high(d) = low(d) + deep - 1
  end subroutine face

  !> Each cell's faces into its neighbours' ghosts, on the opposite side.
  subroutine copy_faces
    integer :: cell, d, side, at(3), image, theirs, a(3), b(3), c(3), e(3)

    do cell = 1, q
      do d = 1, 3
        do side = -1, 1, 2
          at = place(cell)
          at(d) = at(d) + side
          call owner(at, image, theirs)
          if (image == 0) cycle
          call face(d, side, .false., a, b)
          call face(d, side, .true., c, e)
          u(:, c(1):e(1), c(2):e(2), c(3):e(3), theirs)[image] = u(:, a(1):b(1), a(2):b(2), a(3):b(3), cell)
        end do
      end do
    end do
  end subroutine copy_faces

  integer function wrong_ghosts()
    integer :: cell, d, side, at(3), image, theirs, c(3), e(3), x, y, z

    wrong_ghosts = 0
    do cell = 1, q
      do d = 1, 3
        do side = -1, 1, 2
          at = place(cell)
          at(d) = at(d) - side
          call owner(at, image, theirs)
          if (image == 0) cycle
          call face(d, side, .true., c, e)
          at = place(cell) * m
          do z = c(3), e(3)
            do y = c(2), e(2)
              do x = c(1), e(1)
                if (u(3, x, y, z, cell) /= value_at(3, at(1) + x, at(2) + y, at(3) + z)) &
                  wrong_ghosts = wrong_ghosts + 1
              end do
            end do
          end do
        end do
      end do
    end do
  end function wrong_ghosts

  !> Through the layers of a dimension: each cell adds 1 and puts its plane to the next one.
  integer function sweep(d)
    integer, intent(in) :: d
    integer :: layer, cell, at(3), image, theirs

    plane = 0
    sync all
    sweep = 0
    do layer = 0, q - 1
      do cell = 1, q
        at = place(cell)
        if (at(d) /= layer) cycle
        plane(:, :, :, cell) = plane(:, :, :, cell) + 1
        if (any(plane(:, :, :, cell) /= layer + 1)) sweep = sweep + 1
        at(d) = at(d) + 1
        call owner(at, image, theirs)
        if (image /= 0) plane(:, :, :, theirs)[image] = plane(:, :, :, cell)
      end do
      sync all
    end do
  end function sweep
end program bt_coarray
