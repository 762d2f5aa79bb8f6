# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What users call: ompi-nic-info, its parts that compare runs and that measure, the small MPI programs that these
# start, and what is preloaded.
bin_SCRIPTS = tools/ompi-nic-info
pkglibexec_SCRIPTS = tools/ompi-nic-calibrate tools/ompi-nic-run
pkglibexec_PROGRAMS += tools/ompi-nic-probe

tools_ompi_nic_probe_SOURCES = tools/probe.c
tools_ompi_nic_probe_LDADD = $(OMPI_LDFLAGS) $(OMPI_LIBS)

pkglibexec_PROGRAMS += tools/ompi-nic-calibrate-run
tools_ompi_nic_calibrate_run_SOURCES = tools/calibrate.c
tools_ompi_nic_calibrate_run_LDFLAGS = $(HWLOC_LDFLAGS)
tools_ompi_nic_calibrate_run_LDADD = common/libonic_core.a $(OMPI_LDFLAGS) $(OMPI_LIBS) $(HWLOC_LIBS) -lm

component_PROGRAMS += .libs/libompi_nic_times.so
_libs_libompi_nic_times_so_SOURCES = tools/times.c
_libs_libompi_nic_times_so_LDFLAGS = -shared -Wl,-soname,libompi_nic_times.so
_libs_libompi_nic_times_so_LDADD =

tools_scripts = $(bin_SCRIPTS) $(pkglibexec_SCRIPTS)
$(tools_scripts): %: $(srcdir)/%.in Makefile
	@$(MKDIR_P) tools
	$(AM_V_GEN)$(SED) -e 's|[@]PACKAGE_VERSION@|$(PACKAGE_VERSION)|' \
	    -e 's|[@]componentdir@|$(componentdir)|' -e 's|[@]pkglibexecdir@|$(pkglibexecdir)|' \
	    $(srcdir)/$@.in >$@.tmp && chmod +x $@.tmp && mv $@.tmp $@

CLEANFILES += $(tools_scripts)
EXTRA_DIST += $(tools_scripts:=.in)
