# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# Plain MPI programs: which component moves the data is said on mpirun's command line. Only copy
# measures what is below them. Those in perf_quick are what `perf/compare --quick` runs.
perf_quick = perf/barrier perf/p2p perf/p2p_patterns perf/patterns perf/strided_rma
perf_programs = $(perf_quick) perf/away perf/cells perf/collectives perf/copy perf/p2p_threads perf/ranks perf/updates perf/windows \
	$(app_programs)
EXTRA_PROGRAMS += $(perf_programs)

# With the components; nothing of it is installed.
perf-quick: all $(perf_quick)
perf-programs: all $(perf_programs)

perf_common = \
	perf/bench.c \
	perf/cacheline.c \
	perf/window.c
perf_rma = perf/rma_test.c perf/shape.c
perf_steps = perf/steps.c
perf_columns = $(perf_steps) perf/columns.c
perf_ldadd = $(OMPI_LDFLAGS) $(OMPI_LIBS) -lm

# As fast as the compiler can make it: the plain loops in here are what the transfers are compared
# with.
perf_cflags = $(AM_CFLAGS) -O3

perf_away_SOURCES = $(perf_common) $(perf_rma) perf/away.c
perf_away_CFLAGS = $(perf_cflags)
perf_away_LDADD = $(perf_ldadd)

perf_barrier_SOURCES = $(perf_common) perf/barrier.c
perf_barrier_CFLAGS = $(perf_cflags)
perf_barrier_LDADD = $(perf_ldadd)

perf_cells_SOURCES = $(perf_common) $(perf_rma) perf/cells.c
perf_cells_CFLAGS = $(perf_cflags)
perf_cells_LDADD = $(perf_ldadd)

perf_collectives_SOURCES = $(perf_common) $(perf_steps) perf/collectives.c
perf_collectives_CFLAGS = $(perf_cflags)
perf_collectives_LDADD = $(perf_ldadd)

perf_copy_SOURCES = perf/copy.c
perf_copy_CPPFLAGS = $(pure_cppflags)
perf_copy_CFLAGS = $(perf_cflags)
perf_copy_LDADD = common/libonic_core.a

perf_ranks_SOURCES = perf/ranks.c
perf_ranks_LDADD = $(perf_ldadd)

perf_updates_SOURCES = $(perf_common) perf/updates.c
perf_updates_LDADD = $(perf_ldadd)

perf_windows_SOURCES = perf/windows.c
perf_windows_LDADD = $(perf_ldadd)

perf_p2p_SOURCES = $(perf_common) perf/p2p.c
perf_p2p_CFLAGS = $(perf_cflags)
perf_p2p_LDADD = $(perf_ldadd)

perf_p2p_patterns_SOURCES = $(perf_common) $(perf_columns) perf/p2p_patterns.c
perf_p2p_patterns_CFLAGS = $(perf_cflags)
perf_p2p_patterns_LDADD = $(perf_ldadd)

perf_p2p_threads_SOURCES = $(perf_common) perf/p2p_threads.c
perf_p2p_threads_CFLAGS = $(perf_cflags)
perf_p2p_threads_LDADD = $(perf_ldadd)

perf_patterns_SOURCES = $(perf_common) $(perf_columns) perf/patterns.c
perf_patterns_CFLAGS = $(perf_cflags)
perf_patterns_LDADD = $(perf_ldadd)

perf_strided_rma_SOURCES = $(perf_common) $(perf_rma) perf/strided_rma.c
perf_strided_rma_CFLAGS = $(perf_cflags)
perf_strided_rma_LDADD = $(perf_ldadd)

# The papers' networks by simulation, with the code that decides in production. The methods' rows are
# linked with what they start, which is not called: it runs without mpirun.
sim_sources = \
	perf/sim/barrier.c \
	perf/sim/events.c \
	perf/sim/fence.c \
	perf/sim/machines.c \
	perf/sim/optimal.c \
	perf/sim/requests.c \
	perf/sim/transfer.c
sim_libs = coll_nicbarrier/libnicbarrier_core.a osc_nicstride/libnicstride_core.a common/libonic_core.a
check_PROGRAMS += perf/sim/figures
perf_sim_figures_SOURCES = $(sim_sources) \
	perf/sim/figures.c \
	perf/sim/figures_armci.c \
	perf/sim/figures_barrier.c \
	perf/sim/figures_strided.c \
	perf/sim/figures_superpipeline.c
perf_sim_figures_CPPFLAGS = $(AM_CPPFLAGS) $(with_share)
perf_sim_figures_LDADD = coll_nicbarrier/libnicbarrier_core.a osc_nicstride/libnicstride_methods.a \
	osc_nicstride/libnicstride_core.a .libs/libompi_nic_common.so $(OMPI_LDFLAGS) $(OMPI_PROGRAM_LIBS) -lm
perf_sim_figures_LDFLAGS = $(methods_ldflags)
EXTRA_perf_sim_figures_DEPENDENCIES = .libs/libompi_nic_common.so

# make figures FIGURES=$(srcdir)/docs/figures writes those of the documents. The last ones have a million
# members and take minutes; MEMBERS=4096 does not.
FIGURES = figures
MEMBERS = 1048576
figures: perf/sim/figures
	$(PYTHON3) $(srcdir)/perf/sim/draw perf/sim/figures $(FIGURES) --members $(MEMBERS)
	@echo "See $(FIGURES)/README.md"

# Everything beside the stock components, and what is chosen beside what could be, in twenty minutes.
PERF_MINUTES = 15
REGRET_MINUTES = 5
perf: perf-programs perf-mpich
	@rm -f perf.json
	$(srcdir)/perf/compare everything --minutes $(PERF_MINUTES) --time 10 --timeout 40 --builddir . \
	    --mpirun "$(MPIRUN)" --json perf.json >perf.log
	$(srcdir)/perf/regret --minutes $(REGRET_MINUTES) --time 10 --timeout 40 --builddir . \
	    --mpirun "$(MPIRUN)" >>perf.log
	$(srcdir)/perf/page perf.json perf.html
	@echo "See perf.html, perf.log and perf.json"

# make perf-diff OLD=a.json NEW=b.json
perf-diff:
	@test -n "$(OLD)" && test -n "$(NEW)" || { echo "make perf-diff OLD=a.json NEW=b.json"; exit 2; }
	@$(srcdir)/perf/diff "$(OLD)" "$(NEW)"

# The programs for MPICH, too, where Debian's is installed: plain MPI, compiled again, without its warnings.
perf-mpich:
	@if command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null; then \
	    $(MKDIR_P) perf/mpich; \
	    compile() { \
	        program=$$1; \
	        shift; \
	        for file; do \
	            shift; \
	            case $$file in *.c) set -- "$$@" "$(srcdir)/$$file" ;; esac; \
	        done; \
	        mpicc.mpich -w -std=gnu11 -O3 -I$(srcdir) -o perf/mpich/$$program "$$@" -lm; \
	    }; \
	    compile barrier $(perf_barrier_SOURCES) && \
	    compile collectives $(perf_collectives_SOURCES) && \
	    compile p2p $(perf_p2p_SOURCES) && \
	    compile p2p_patterns $(perf_p2p_patterns_SOURCES) && \
	    compile patterns $(perf_patterns_SOURCES) && \
	    compile strided_rma $(perf_strided_rma_SOURCES); \
	fi

.PHONY: figures perf perf-diff perf-mpich perf-programs perf-quick
CLEANFILES += $(perf_programs) perf.html perf.json perf.log

EXTRA_DIST += \
	perf/README.md \
	perf/compare \
	perf/diff \
	perf/page \
	perf/plot \
	perf/others.py \
	perf/presets.py \
	perf/regret \
	perf/sim/draw \
	perf/sim/paragraphs.py \
	perf/superpipe \
	perf/apps/bt_coarray.f90 \
	perf/summary.py \
	perf/tables.py
