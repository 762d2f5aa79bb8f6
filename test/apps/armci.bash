# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
#
# ARMCI-MPI, ComEx over MPI-3 and Global Arrays over both, for test/apps/run: from a copy that the user names, sources
# or built. Sources are built in a copy of them by their own build system, which also says what their tests are. Each
# program runs without the components and with them, in turn. One that fails without them, too, is named and does not
# count. Benchmarks run APPS_ROUNDS times, and their times stand side by side (times.py).

# tests_of BUILD WORDS: the programs that make expands WORDS to.
tests_of()
{
    printf 'include Makefile\nonic-print:\n\t@echo %s\n' "$2" >"$scratch/print.mk"
    make -s -C "$1" -f "$scratch/print.mk" onic-print 2>/dev/null | tr ' ' '\n' | sed '/^$/d' | sort -u
}

# autotools_build NAME SOURCE WORDS...: builds in a copy, with words for configure; prints the build tree. A tree that
# has been built is taken as it is.
autotools_build()
{
    local name=$1 source=$2 tree=$scratch/$1
    shift 2
    if test -f "$source/Makefile"; then
        echo "$source"
        return
    fi
    cp -R "$source" "$tree"
    if (cd "$tree" && { test -x configure || autoreconf -fi; } && ./configure MPICC=mpicc CC=mpicc "$@" &&
        make -j2 && make -j2 checkprogs) >"$scratch/$name-build.log" 2>&1 </dev/null; then
        echo "$tree"
    else
        tail -5 "$scratch/$name-build.log" | sed 's/^/  | /' >&2
    fi
}

# suite_run with|without LOG RANKS PROGRAM: a suite as a whole has to make windows, not each of its programs.
suite_run()
{
    if test "$1" = with; then
        windows=some start "$osc" "$pml" "$2" "$3" "$4"
    else
        start ^nicstride "$pml" "$2" "$3" "$4"
    fi
}

# benchmark SUITE RANKS PROGRAM: the first round has been run.
benchmark()
{
    local round without=$scratch/suite-without with=$scratch/suite-with
    grep -q "^    \"\($1/\)\?${3##*/}\"" "$here/times.py" || return 0
    for ((round = 2; round <= ${APPS_ROUNDS:-3}; round++)); do
        suite_run without "$without.$round" "$2" "$3" && suite_run with "$with.$round" "$2" "$3" || return 0
    done
    "$here/times.py" $(test $verbose = no || echo --verbose) "$1/${3##*/}" "$without" "$with"
}

# suite APP SUITE BUILD: reads lines "ranks program" of BUILD. A program's times are compared with its first ranks.
suite()
{
    local app=$1 suite=$2 build=$3 ranks program good=0 made=0 bad=() timed=" "
    while read -r ranks program; do
        rm -f "$scratch"/suite-*
        if ! suite_run without "$scratch/suite-without.1" "$ranks" "$build/$program"; then
            printf '      %-44s fails without the components, too, %s ranks\n' "$program" "$ranks"
        elif suite_run with "$scratch/suite-with.1" "$ranks" "$build/$program"; then
            good=$((good + 1))
            ! grep -q 'osc_nicstride: methods by kind of peer' "$scratch/suite-with.1" || made=$((made + 1))
            case $timed in
            *" $program "*) ;;
            *) benchmark "$suite" "$ranks" "$build/$program" ;;
            esac
            timed="$timed$program "
        else
            bad+=("$program ($ranks)")
            test $verbose = yes || show "$scratch/suite-with.1" | tail -20
        fi
    done
    if test ${#bad[@]} != 0; then
        fail "$app" "$good programs are right, these are not: ${bad[*]}"
    elif test $made = 0; then
        fail "$app" "no program of $good has made a window of osc_nicstride"
    else
        pass "$app" "$good programs, $made of them with windows"
    fi
}

# on_ranks RANKS: names the ranks before each program.
on_ranks() { sed "s/^/$1 /"; }

# armci_tree: where ARMCI-MPI is built, and installed for Global Arrays.
armci_tree()
{
    if test -d "$scratch/armci"; then
        echo "$scratch/armci"
    else
        autotools_build armci "$armci" --prefix="$scratch/armci-installed"
    fi
}

armci()
{
    local tree
    if test -z "$armci"; then
        skip armci "no copy is named: --armci DIR, ARMCI-MPI's sources, or a tree where they are built"
    elif test ! -f "$armci/configure.ac" && test ! -f "$armci/Makefile"; then
        skip armci "$armci has no tests of ARMCI-MPI"
    elif tree=$(armci_tree) && test -n "$tree"; then
        suite armci armci "$tree" < <(for ranks in 2 4; do
            tests_of "$tree" '$(filter-out $(XFAIL_TESTS),$(TESTS))' | on_ranks $ranks
        done)
    else
        fail armci "ARMCI-MPI cannot be built"
    fi
}

# Its tests for two processes, and the others.
comex()
{
    local tree source=$ga
    test ! -d "$ga/comex" || source=$ga/comex
    if test -z "$ga"; then
        skip comex "no copy is named: --ga DIR, Global Arrays' sources, or a tree where they are built"
    elif tree=$(autotools_build comex "$source" --with-mpi3) && test -n "$tree"; then
        suite comex comex "$tree" < <(
            tests_of "$tree" '$(DUAL_TESTS)' | on_ranks 2
            tests_of "$tree" '$(filter-out $(DUAL_TESTS) $(XFAIL_TESTS),$(TESTS))' | on_ranks "${NPROCS:-4}"
        )
    else
        fail comex "ComEx cannot be built"
    fi
}

# ga_over APP [WORD]: by one of configure's words for what it communicates by.
ga_over()
{
    local tree
    if tree=$(autotools_build "$1" "$ga" "${@:2}") && test -n "$tree"; then
        suite "$1" ga "$tree" < <(
            tests_of "$tree" '$(filter-out $(XFAIL_TESTS),$(SERIAL_TESTS))' | on_ranks 1
            tests_of "$tree" '$(filter-out $(SERIAL_TESTS) $(XFAIL_TESTS),$(TESTS))' |
                on_ranks "${NPROCS:-4}"
        )
    else
        fail "$1" "Global Arrays cannot be built"
    fi
}

ga()
{
    local prefix=$armci
    if test -z "$ga"; then
        skip ga "no copy is named: --ga DIR, Global Arrays' sources, or a tree where they are built"
        return
    fi
    if test -f "$ga/Makefile"; then
        ga_over ga
        return
    fi
    ga_over ga-comex --with-mpi3
    if test -z "$armci"; then
        skip ga-armci "no ARMCI-MPI is named: --armci DIR, its sources or where it is installed"
        return
    fi
    if test ! -f "$armci/include/armci.h"; then
        prefix=$scratch/armci-installed
        make -C "$(armci_tree)" install >>"$scratch/armci-build.log" 2>&1
    fi
    ga_over ga-armci --with-armci="$prefix"
}
