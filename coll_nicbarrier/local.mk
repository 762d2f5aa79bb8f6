# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LTLIBRARIES += coll_nicbarrier/libnicbarrier_core.la

coll_nicbarrier_libnicbarrier_core_la_SOURCES = \
	coll_nicbarrier/arrange.c \
	coll_nicbarrier/arrange.h \
	coll_nicbarrier/engine.h \
	coll_nicbarrier/epoch.c \
	coll_nicbarrier/epoch.h \
	coll_nicbarrier/packet.c \
	coll_nicbarrier/packet.h \
	coll_nicbarrier/reason.c \
	coll_nicbarrier/schedule.c \
	coll_nicbarrier/schedule.h \
	coll_nicbarrier/tombstone.c \
	coll_nicbarrier/tombstone.h
coll_nicbarrier_libnicbarrier_core_la_CPPFLAGS = $(pure_cppflags)
