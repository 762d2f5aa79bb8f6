# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LIBRARIES += osc_nicstride/libnicstride_core.a

osc_nicstride_libnicstride_core_a_SOURCES = \
	osc_nicstride/check/shadow.c \
	osc_nicstride/check/under_way.c \
	osc_nicstride/methods/plan.c \
	osc_nicstride/methods/sieve.c \
	osc_nicstride/protocol/apply.c \
	osc_nicstride/protocol/discipline.c \
	osc_nicstride/protocol/epoch.c \
	osc_nicstride/protocol/lockq.c \
	osc_nicstride/protocol/message.c \
	osc_nicstride/protocol/peer_layout_cache.c \
	osc_nicstride/window/region.c
osc_nicstride_libnicstride_core_a_CPPFLAGS = $(pure_cppflags)

# What does: the methods, of which tests link the rows, and what they stand on.
noinst_LIBRARIES += osc_nicstride/libnicstride_methods.a

osc_nicstride_libnicstride_methods_a_SOURCES = \
	osc_nicstride/check/check.c \
	osc_nicstride/check/report.c \
	osc_nicstride/methods/direct.c \
	osc_nicstride/methods/pack/pack.c \
	osc_nicstride/methods/pack/serve.c \
	osc_nicstride/methods/pack/short.c \
	osc_nicstride/methods/pack/update.c \
	osc_nicstride/methods/pipeline.c \
	osc_nicstride/methods/rows.c \
	osc_nicstride/methods/single_copy.c \
	osc_nicstride/methods/ucx_rma.c \
	osc_nicstride/methods/verbs_peer.c \
	osc_nicstride/methods/verbs_wr.c \
	osc_nicstride/queue/ask_lock.c \
	osc_nicstride/queue/describe.c \
	osc_nicstride/queue/flow.c \
	osc_nicstride/queue/keys.c \
	osc_nicstride/queue/operation.c \
	osc_nicstride/queue/presence.c \
	osc_nicstride/queue/request.c \
	osc_nicstride/queue/send.c \
	osc_nicstride/queue/wait.c \
	osc_nicstride/sync/change_queue.c \
	osc_nicstride/sync/fence.c \
	osc_nicstride/sync/flush.c \
	osc_nicstride/sync/lock.c \
	osc_nicstride/sync/lock_queue.c \
	osc_nicstride/sync/pscw.c \
	osc_nicstride/sync/window_lock.c \
	osc_nicstride/target/access.c \
	osc_nicstride/target/answer.c \
	osc_nicstride/target/dispatch.c \
	osc_nicstride/window/control.c \
	osc_nicstride/window/hold.c \
	osc_nicstride/window/op.c \
	osc_nicstride/window/module.c \
	osc_nicstride/window/peer.c \
	osc_nicstride/window/state.c
osc_nicstride_libnicstride_methods_a_CPPFLAGS = $(AM_CPPFLAGS) $(verbs_cppflags) -D_GNU_SOURCE

component_PROGRAMS += .libs/mca_osc_nicstride.so

_libs_mca_osc_nicstride_so_SHORTNAME = osc
_libs_mca_osc_nicstride_so_SOURCES = \
	osc_nicstride/component/agreement.c \
	osc_nicstride/component/component.c \
	osc_nicstride/component/info.c \
	osc_nicstride/component/memory.c \
	osc_nicstride/component/params.c \
	osc_nicstride/component/window.c \
	osc_nicstride/component/window_free.c \
	osc_nicstride/origin/attach.c \
	osc_nicstride/origin/put_get.c \
	osc_nicstride/origin/resolve.c \
	osc_nicstride/origin/update.c \
	osc_nicstride/origin/choose.c
_libs_mca_osc_nicstride_so_CPPFLAGS = $(AM_CPPFLAGS) $(verbs_cppflags) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
_libs_mca_osc_nicstride_so_LDADD = osc_nicstride/libnicstride_methods.a osc_nicstride/libnicstride_core.a $(OMPI_INTERNAL_LIBS)
_libs_mca_osc_nicstride_so_DEPENDENCIES = osc_nicstride/libnicstride_methods.a osc_nicstride/libnicstride_core.a \
	.libs/libompi_nic_common.so
# nodelete: callbacks of the transport, which another component may keep open, must outlive a dlclose.
_libs_mca_osc_nicstride_so_LDFLAGS = -shared -Wl,-soname,mca_osc_nicstride.so -Wl,-z,nodelete,-Bsymbolic-functions \
	$(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += osc_nicstride/help-osc-nicstride.txt
