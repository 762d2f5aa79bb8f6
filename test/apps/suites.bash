# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
#
# NAS Parallel Benchmarks and OSU's micro-benchmarks, for test/apps/run: from a copy that the user names, sources or
# built. Sources are built in a copy of them. Each program runs without the components and with them, in turn; its
# own verification counts, and the times of both are printed.

# beside NAME UNIT WITHOUT WITH: a line for both times.
beside()
{
    printf '      %-28s without %12s %s, with %12s %s\n' "$1" "$3" "$2" "$4" "$2"
}


# ---- NAS Parallel Benchmarks ---------------------------------------------------------------------

# npb_top DIR: the MPI version of the sources, if DIR has it.
npb_top()
{
    local dir
    for dir in "$1" "$1"/NPB*-MPI "$1"/*/NPB*-MPI; do
        test -d "$dir/BT" && test -f "$dir/sys/make.common" && { echo "$dir"; return; }
    done
}

# npb_build TOP PROGRAM CLASS: prints the binary. The versions up to 3.3 are built for a number of ranks.
npb_build()
{
    local found
    (cd "$1" && make "$2" CLASS="$3" NPROCS=4) >"$scratch/npb-build.log" 2>&1 </dev/null
    for found in "$1/bin/$2.$3.x" "$1/bin/$2.$3.4"; do
        test -x "$found" && { echo "$found"; return; }
    done
}

# npb_run LOG BINARY with|without
npb_run()
{
    if test "$3" = with; then
        start "" superpipe "$1" 4 --mca coll_nicbarrier_priority 90 "$2"
    else
        start ^nicstride ^superpipe "$1" 4 --mca coll ^nicbarrier "$2"
    fi && grep -Eiq 'verification *= *successful' "$1"
}

npb_seconds()
{
    sed -n 's/^ *Time in seconds *= *//p' "$1" | tail -1
}

npb()
{
    local top binary program class good=0 bad=() log=$scratch/npb.log plain=$scratch/npb-plain.log
    if test -z "$npb"; then
        skip npb "no copy is named: --npb DIR, sources (NPB3.4 or 3.3) or a folder of programs as bt.S.x"
        return
    fi
    top=$(npb_top "$npb")
    if test -n "$top"; then
        cp -R "$top" "$scratch/npb"
        cat >"$scratch/npb/config/make.def" <<EOF
MPIFC = mpif90
MPIF77 = mpif90
FC = mpif90
FLINK = mpif90
FMPI_LIB =
FMPI_INC =
FFLAGS = -O2 -w $(npb_fortran_flags)
FLINKFLAGS = -O2
MPICC = mpicc
CC = mpicc
CLINK = mpicc
CMPI_LIB =
CMPI_INC =
CFLAGS = -O2 -w
CLINKFLAGS = -O2
UCC = cc -w
BINDIR = ../bin
RAND = randi8
EOF
        mkdir -p "$scratch/npb/bin"
    fi
    for class in $npb_classes; do
        for program in $npb_programs; do
            binary=$npb/$program.$class.x
            test -x "$binary" || binary=$npb/bin/$program.$class.x
            test -z "$top" || binary=$(npb_build "$scratch/npb" $program "$class")
            if test ! -x "$binary"; then
                bad+=("$program.$class (not built)")
                test $verbose = yes || tail -5 "$scratch/npb-build.log" 2>/dev/null | sed 's/^/  | /'
            elif npb_run "$plain" "$binary" without && npb_run "$log" "$binary" with; then
                good=$((good + 1))
                beside "$program.$class" s "$(npb_seconds "$plain")" "$(npb_seconds "$log")"
            else
                bad+=("$program.$class")
                test $verbose = yes || show "$log" | tail -20
            fi
        done
    done
    if test ${#bad[@]} = 0; then
        pass npb "$good programs verify with and without the components, 4 ranks"
    else
        fail npb "$good programs verify, these do not: ${bad[*]}"
    fi
}

# The sources pass one buffer as several types, and have old constants: what newer compilers want to be told.
npb_fortran_flags()
{
    local flag
    echo 'end' >"$scratch/flag.f90"
    for flag in -fallow-argument-mismatch -fallow-invalid-boz; do
        mpif90 $flag -c -o "$scratch/flag.o" "$scratch/flag.f90" 2>/dev/null && echo $flag
    done | tr '\n' ' '
}

# ---- OSU micro-benchmarks ------------------------------------------------------------------------

# osu_build DIR: builds in a copy; prints where the programs are. A copy out of git has no times of files, so its
# configure may not fit.
osu_build()
{
    cp -R "$1" "$scratch/osu"
    (cd "$scratch/osu" && chmod +x configure && ./configure CC=mpicc CXX=mpicxx && make -j2 ||
        { autoreconf -fi && ./configure CC=mpicc CXX=mpicxx && make -k -j2; }) \
        >"$scratch/osu-build.log" 2>&1 </dev/null
    echo "$scratch/osu"
}

# osu_last LOG: the last line of numbers: size, and latency or bandwidth.
osu_last()
{
    awk '/^[0-9]/ && NF >= 2 { value = $2 } /^ +[0-9.]+/ { value = $1 } END { print value }' "$1"
}

# osu_run with|without FOLDER LOG BINARY: as the program's kind needs. Short, and with validation where it has that.
osu_run()
{
    local ranks=2 osc="" pml=superpipe arguments=() help
    help=$("$4" --help 2>&1 </dev/null)
    case $4 in
    # Its validation fails now and then over all components.
    */osu_fop_latency) ;;
    # Its sums of that type overflow, and what it expects does not.
    */osu_*reduce*) grep -q -- '--type' <<<"$help" && arguments+=(-c -T mpi_float) ;;
    *) grep -q -- '--validation ' <<<"$help" && arguments+=(-c) ;;
    esac
    grep -q -- '--iterations' <<<"$help" && arguments+=(-i 20 -x 2)
    grep -q -- '--message-size' <<<"$help" && arguments+=(-m 1:65536)
    case $2 in
    one-sided) osc=nicstride pml= ;;
    collective) ranks=4 ;;
    esac
    if test "$1" = with; then
        start "$osc" "$pml" "$3" $ranks --mca coll_nicbarrier_priority 90 "$4" "${arguments[@]}"
    else
        start ^nicstride ^superpipe "$3" $ranks --mca coll ^nicbarrier "$4" "${arguments[@]}"
    fi && ! grep -Eiq 'validation.*fail|data validation error|\bFail\b' "$3"
}

osu()
{
    local dir folder binary name good=0 bad=() log=$scratch/osu.log plain=$scratch/osu-plain.log
    if test -z "$osu"; then
        skip osu "no copy is named: --osu DIR, sources or where they are installed"
        return
    fi
    dir=$osu
    test ! -f "$osu/configure" -a ! -f "$osu/configure.ac" || dir=$(osu_build "$osu")
    for folder in pt2pt one-sided collective; do
        while read -r binary; do
            name=${binary##*/}
            if osu_run without $folder "$plain" "$binary"; then
                if osu_run with $folder "$log" "$binary"; then
                    good=$((good + 1))
                    beside "$name" "" "$(osu_last "$plain")" "$(osu_last "$log")"
                else
                    bad+=("$name")
                    test $verbose = yes || show "$log" | tail -20
                fi
            else
                # It needs what this machine or Open MPI does not have.
                printf '      %-28s does not run without the components, either\n' "$name"
            fi
        done < <(find "$dir" -path "*/$folder/*" -name 'osu_*' -type f -perm -u+x \
            ! -path '*/.libs/*' ! -name '*.py' | sort)
    done
    if test $good = 0 && test ${#bad[@]} = 0; then
        fail osu "there are no programs in $osu"
    elif test ${#bad[@]} = 0; then
        pass osu "$good programs, with validation where they have it"
    else
        fail osu "$good programs are right, these are not: ${bad[*]}"
    fi
}
