# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# Applications, which test/run runs with small sizes, too.
app_programs = perf/apps/bt perf/apps/gather perf/apps/halo3d perf/apps/srumma \
	perf/apps/transpose

perf_apps_common = $(perf_common) $(perf_steps) \
	perf/apps/app.c \
	perf/apps/moved.c
perf_apps_epoch = perf/apps/epoch.c
# So that leaks are told by name, as in the test programs.
perf_apps_ldadd = $(keep_loaded) $(perf_ldadd)

perf_apps_bt_SOURCES = $(perf_apps_common) $(perf_apps_epoch) \
	perf/apps/bt.c \
	perf/apps/bt_cell.c \
	perf/apps/bt_tiling.c
perf_apps_bt_CFLAGS = $(perf_cflags)
perf_apps_bt_LDADD = $(perf_apps_ldadd)

perf_apps_gather_SOURCES = $(perf_apps_common) $(perf_apps_epoch) perf/apps/gather.c
perf_apps_gather_CFLAGS = $(perf_cflags)
perf_apps_gather_LDADD = $(perf_apps_ldadd)

perf_apps_halo3d_SOURCES = $(perf_apps_common) $(perf_apps_epoch) \
	perf/apps/grid.c \
	perf/apps/halo3d.c
perf_apps_halo3d_CFLAGS = $(perf_cflags)
perf_apps_halo3d_LDADD = $(perf_apps_ldadd)

perf_apps_srumma_SOURCES = $(perf_apps_common) perf/apps/srumma.c
perf_apps_srumma_CFLAGS = $(perf_cflags)
perf_apps_srumma_LDADD = $(perf_apps_ldadd)

perf_apps_transpose_SOURCES = $(perf_apps_common) $(perf_apps_epoch) perf/apps/transpose.c
perf_apps_transpose_CFLAGS = $(perf_cflags)
perf_apps_transpose_LDADD = $(perf_apps_ldadd)
