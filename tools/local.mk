# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What users call: ompi-nic-info, its part that compares runs, the small MPI program that it starts, and what it
# preloads.
bin_SCRIPTS = tools/ompi-nic-info
pkglibexec_SCRIPTS = tools/ompi-nic-run
pkglibexec_PROGRAMS += tools/ompi-nic-probe

tools_ompi_nic_probe_SOURCES = tools/probe.c
tools_ompi_nic_probe_LDADD = $(OMPI_LDFLAGS) $(OMPI_LIBS)

component_LTLIBRARIES += libompi_nic_times.la
libompi_nic_times_la_SOURCES = tools/times.c
libompi_nic_times_la_LDFLAGS = -module -shared -avoid-version

tools_subst = $(SED) -e 's|[@]PACKAGE_VERSION@|$(PACKAGE_VERSION)|' -e 's|[@]componentdir@|$(componentdir)|' \
	-e 's|[@]pkglibexecdir@|$(pkglibexecdir)|'

tools/ompi-nic-info: $(srcdir)/tools/ompi-nic-info.in Makefile
	@$(MKDIR_P) tools
	$(AM_V_GEN)$(tools_subst) $(srcdir)/tools/ompi-nic-info.in >$@.tmp && chmod +x $@.tmp && mv $@.tmp $@

tools/ompi-nic-run: $(srcdir)/tools/ompi-nic-run.in Makefile
	@$(MKDIR_P) tools
	$(AM_V_GEN)$(tools_subst) $(srcdir)/tools/ompi-nic-run.in >$@.tmp && chmod +x $@.tmp && mv $@.tmp $@

CLEANFILES += $(bin_SCRIPTS) $(pkglibexec_SCRIPTS)
EXTRA_DIST += tools/ompi-nic-info.in tools/ompi-nic-run.in
