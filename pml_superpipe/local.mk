# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LTLIBRARIES += pml_superpipe/libsuperpipe_core.la

pml_superpipe_libsuperpipe_core_la_SOURCES = \
	pml_superpipe/matching/comm.c \
	pml_superpipe/matching/comm.h \
	pml_superpipe/matching/comms.c \
	pml_superpipe/matching/comms.h \
	pml_superpipe/matching/credit.c \
	pml_superpipe/matching/credit.h \
	pml_superpipe/matching/match.c \
	pml_superpipe/matching/match.h \
	pml_superpipe/matching/rings.c \
	pml_superpipe/matching/rings.h
pml_superpipe_libsuperpipe_core_la_CPPFLAGS = $(pure_cppflags)
