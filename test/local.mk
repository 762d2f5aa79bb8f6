# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# ---- unit tests of the pure cores: make check ----------------------------------------------------

# First those that wait longest.
if HAVE_BPF
unit_programs_bpf = \
	test/unit/check_nicbarrier_bpf \
	test/unit/check_nicbarrier_bpf_conformance \
	test/unit/check_nicbarrier_bpf_hosts
endif
unit_programs = $(unit_programs_bpf) \
	test/unit/check_alone \
	test/unit/check_apply \
	test/unit/check_batch \
	test/unit/check_change_queue \
	test/unit/check_copy \
	test/unit/check_discipline \
	test/unit/check_epoch \
	test/unit/check_fence \
	test/unit/check_under_way \
	test/unit/check_credit \
	test/unit/check_completion \
	test/unit/check_handle \
	test/unit/check_layout \
	test/unit/check_layout_wire \
	test/unit/check_lockq \
	test/unit/check_helper_thread \
	test/unit/check_life \
	test/unit/check_pipeline_chunks \
	test/unit/check_pipeline_pipe \
	test/unit/check_pipeline_pool \
	test/unit/check_rma_handshake \
	test/unit/check_pipeline_transfers \
	test/unit/check_pipeline_grant_queue \
	test/unit/check_hybrid \
	test/unit/check_model_link \
	test/unit/check_model_pipeline \
	test/unit/check_order \
	test/unit/check_nicbarrier_chain \
	test/unit/check_nicbarrier_plan \
	test/unit/check_nicbarrier_waiting \
	test/unit/check_nicbarrier_conformance \
	test/unit/check_nicbarrier_datagram \
	test/unit/check_nicbarrier_epoch \
	test/unit/check_nicbarrier_packet \
	test/unit/check_nicbarrier_mlx5 \
	test/unit/check_nicbarrier_udp_address \
	test/unit/check_nicbarrier_put \
	test/unit/check_queue \
	test/unit/check_abandoned \
	test/unit/check_adapters \
	test/unit/check_nicbarrier_rule \
	test/unit/check_nicbarrier_schedule \
	test/unit/check_nicbarrier_team \
	test/unit/check_peer_layout_cache \
	test/unit/check_pack \
	test/unit/check_owned_lock \
	test/unit/check_connections \
	test/unit/check_requests \
	test/unit/check_place \
	test/unit/check_plan \
	test/unit/check_plan_facts \
	test/unit/check_plan_tables \
	test/unit/check_pml_choice \
	test/unit/check_pml_header \
	test/unit/check_pml_match \
	test/unit/check_pml_reuse \
	test/unit/check_pml_transfer \
	test/unit/check_message \
	test/unit/check_region \
	test/unit/check_refused \
	test/unit/check_region_layout \
	test/unit/check_address \
	test/unit/check_requirements \
	test/unit/check_segment \
	test/unit/check_shadow \
	test/unit/check_selection \
	test/unit/check_sieve \
	test/unit/check_sim \
	test/unit/check_reply_line \
	test/unit/check_tables \
	test/unit/check_whole_words \
	test/unit/check_vector \
	test/unit/check_verbs \
	test/unit/check_verbs_port

check_libs = $(CHECK_LDFLAGS) $(CHECK_LIBS)
unit_ldadd = osc_nicstride/libnicstride_core.a common/libonic_core.a $(check_libs)
pml_ldadd = pml_superpipe/libsuperpipe_core.a $(check_libs)
barrier_ldadd = coll_nicbarrier/libnicbarrier_core.a common/libonic_verbs.a common/libonic_core.a \
	$(check_libs) $(verbs_libs)

# For all of them, and for these alone: where Check is, there may be other libraries too.
unit_objects = $(unit_programs:=.$(OBJEXT)) test/unit/nicbarrier_conformance.$(OBJEXT) \
	test/unit/nicbarrier_members.$(OBJEXT) \
	test/unit/bpf_group.$(OBJEXT) test/unit/bpf_hosts.$(OBJEXT) test/unit/pml_naive.$(OBJEXT) \
	test/unit/put_transport.$(OBJEXT)
$(unit_objects): AM_CPPFLAGS += $(CHECK_CPPFLAGS)

test_unit_check_alone_LDADD = $(check_libs)
test_unit_check_apply_LDADD = $(unit_ldadd)
test_unit_check_batch_LDADD = $(unit_ldadd)
test_unit_check_vector_LDADD = $(unit_ldadd)
test_unit_check_discipline_LDADD = $(unit_ldadd) -lpthread
test_unit_check_epoch_LDADD = $(unit_ldadd)
test_unit_check_fence_LDADD = $(unit_ldadd)
test_unit_check_credit_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_completion_LDADD = $(unit_ldadd)
test_unit_check_handle_LDADD = $(unit_ldadd)
test_unit_check_peer_layout_cache_LDADD = $(unit_ldadd)
test_unit_check_order_LDADD = $(unit_ldadd)
test_unit_check_layout_LDADD = $(unit_ldadd)
test_unit_check_layout_wire_LDADD = $(unit_ldadd)
test_unit_check_lockq_LDADD = $(unit_ldadd)
test_unit_check_helper_thread_LDADD = $(check_libs)
test_unit_check_pipeline_chunks_LDADD = $(model_ldadd)
test_unit_check_queue_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_life_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_pipeline_pipe_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_pipeline_pool_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_rma_handshake_LDADD = common/libonic_core.a $(check_libs)
# With a transport lock and a carrier of its own.
test_unit_check_pipeline_transfers_SOURCES = \
	test/unit/check_pipeline_transfers.c \
	common/pipeline/transfers.c
test_unit_check_pipeline_transfers_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_pipeline_grant_queue_LDADD = common/libonic_core.a $(check_libs)
model_ldadd = common/libonic_core.a $(check_libs) -lm
with_share = -DSHARE='"$(abs_srcdir)/share"'
test_unit_check_model_link_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(with_share)
test_unit_check_model_link_LDADD = $(model_ldadd)
test_unit_check_model_pipeline_SOURCES = test/unit/check_model_pipeline.c perf/sim/optimal.c
test_unit_check_model_pipeline_LDADD = $(model_ldadd)
test_unit_check_nicbarrier_plan_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_chain_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(verbs_cppflags)
test_unit_check_nicbarrier_chain_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_waiting_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_bpf_SOURCES = \
	test/unit/bpf_group.c \
	test/unit/check_nicbarrier_bpf.c
test_unit_check_nicbarrier_bpf_LDADD = coll_nicbarrier/libnicbarrier_kernel.a $(barrier_ldadd) $(bpf_libs)
test_unit_check_nicbarrier_bpf_conformance_SOURCES = \
	test/unit/bpf_hosts.c \
	test/unit/check_nicbarrier_bpf_conformance.c \
	test/unit/nicbarrier_conformance.c \
	test/unit/nicbarrier_members.c
test_unit_check_nicbarrier_bpf_conformance_LDADD = coll_nicbarrier/libnicbarrier_kernel.a \
	$(barrier_ldadd) $(bpf_libs)
test_unit_check_nicbarrier_bpf_hosts_SOURCES = \
	test/unit/bpf_hosts.c \
	test/unit/check_nicbarrier_bpf_hosts.c
test_unit_check_nicbarrier_bpf_hosts_LDADD = coll_nicbarrier/libnicbarrier_kernel.a $(barrier_ldadd) \
	$(bpf_libs)
test_unit_check_nicbarrier_conformance_SOURCES = \
	test/unit/check_nicbarrier_conformance.c \
	test/unit/fake_kernel.c \
	test/unit/nicbarrier_conformance.c \
	test/unit/nicbarrier_members.c
test_unit_check_nicbarrier_conformance_LDADD = $(barrier_ldadd)
# With functions of its own in place of libibverbs's and libmlx5's.
test_unit_check_nicbarrier_mlx5_SOURCES = \
	test/unit/check_nicbarrier_mlx5.c \
	test/unit/nicbarrier_conformance.c
test_unit_check_nicbarrier_mlx5_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(verbs_cppflags)
test_unit_check_nicbarrier_mlx5_LDADD = coll_nicbarrier/libnicbarrier_core.a \
	common/libonic_verbs.a common/libonic_core.a $(check_libs)
test_unit_check_nicbarrier_datagram_SOURCES = \
	test/unit/check_nicbarrier_datagram.c \
	test/unit/fake_kernel.c
test_unit_check_nicbarrier_datagram_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_epoch_SOURCES = \
	test/unit/check_nicbarrier_epoch.c \
	perf/sim/barrier.c \
	perf/sim/events.c
test_unit_check_nicbarrier_epoch_LDADD = $(barrier_ldadd) -lm
test_unit_check_nicbarrier_packet_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_udp_address_LDADD = $(barrier_ldadd)
# With a transport of its own in place of the one over UCX.
test_unit_check_nicbarrier_put_SOURCES = \
	test/unit/check_nicbarrier_put.c \
	test/unit/nicbarrier_conformance.c \
	test/unit/put_transport.c
test_unit_check_nicbarrier_put_LDADD = $(barrier_ldadd)
# The pool of requests without a row.
test_unit_check_abandoned_SOURCES = \
	common/transport/row/request.c \
	test/unit/check_abandoned.c
test_unit_check_abandoned_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS)
test_unit_check_abandoned_LDADD = $(unit_ldadd)
test_unit_check_adapters_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_nicbarrier_rule_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_schedule_LDADD = $(barrier_ldadd)
test_unit_check_nicbarrier_team_LDADD = $(barrier_ldadd)
test_unit_check_copy_LDADD = $(unit_ldadd)
test_unit_check_sim_SOURCES = test/unit/check_sim.c $(sim_sources)
test_unit_check_sim_LDADD = $(sim_libs) $(check_libs) -lm
test_unit_check_pack_LDADD = $(unit_ldadd)
test_unit_check_owned_lock_LDADD = $(unit_ldadd)
# With a transport of its own in place of the one over UCX.
test_unit_check_change_queue_SOURCES = \
	osc_nicstride/sync/change_queue.c \
	test/unit/check_change_queue.c
test_unit_check_change_queue_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS)
test_unit_check_change_queue_LDADD = $(unit_ldadd)
test_unit_check_requests_LDADD = common/libonic_core.a $(check_libs)
test_unit_check_place_LDADD = $(unit_ldadd)
test_unit_check_tables_LDADD = $(unit_ldadd)
test_unit_check_plan_LDADD = $(methods_ldadd)
test_unit_check_plan_LDFLAGS = $(methods_ldflags)
EXTRA_test_unit_check_plan_DEPENDENCIES = .libs/libompi_nic_common.so
test_unit_check_hybrid_SOURCES = \
	test/unit/check_hybrid.c \
	test/unit/link_sim.c \
	perf/sim/events.c
test_unit_check_hybrid_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(with_share)
test_unit_check_hybrid_LDADD = $(methods_ldadd)
test_unit_check_hybrid_LDFLAGS = $(methods_ldflags)
EXTRA_test_unit_check_hybrid_DEPENDENCIES = .libs/libompi_nic_common.so
# The rows are linked with what they start, which is not called: nothing initialises MPI.
rows_ldadd = pml_superpipe/libsuperpipe_protocols.a pml_superpipe/libsuperpipe_core.a \
	.libs/libompi_nic_common.so $(OMPI_LDFLAGS) $(OMPI_PROGRAM_LIBS) $(check_libs) -lm
rows_ldflags = $(common_ldflags) -Wl,-rpath,$(abs_builddir)/.libs -Wl,-u,superpipe_rows
test_unit_check_pml_choice_LDADD = $(rows_ldadd)
test_unit_check_pml_choice_LDFLAGS = $(rows_ldflags)
EXTRA_test_unit_check_pml_choice_DEPENDENCIES = .libs/libompi_nic_common.so
methods_ldadd = osc_nicstride/libnicstride_methods.a osc_nicstride/libnicstride_core.a \
	.libs/libompi_nic_common.so $(OMPI_LDFLAGS) $(OMPI_PROGRAM_LIBS) $(check_libs) -lm
methods_ldflags = $(common_ldflags) -Wl,-rpath,$(abs_builddir)/.libs -Wl,-u,nicstride_methods
# The tables that all numbers of share/ make; `check_plan_tables write` makes the files again.
plans = default infiniband-hdr other quadrics-elan4 roce-100 slingshot-11 tcp-10g tcp-25g \
	xeon zen3 zen4 zen5
test_unit_check_plan_tables_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(with_share) \
	-DPLANS='"$(abs_srcdir)/test/unit/plans"'
test_unit_check_plan_tables_LDADD = osc_nicstride/libnicstride_methods.a \
	osc_nicstride/libnicstride_core.a $(rows_ldadd)
test_unit_check_plan_tables_LDFLAGS = $(rows_ldflags) -Wl,-u,nicstride_methods
EXTRA_test_unit_check_plan_tables_DEPENDENCIES = .libs/libompi_nic_common.so
test_unit_check_plan_facts_LDADD = $(test_unit_check_plan_tables_LDADD)
test_unit_check_plan_facts_LDFLAGS = $(test_unit_check_plan_tables_LDFLAGS)
EXTRA_test_unit_check_plan_facts_DEPENDENCIES = .libs/libompi_nic_common.so
EXTRA_DIST += $(plans:%=test/unit/plans/%.txt)
test_unit_check_pml_header_LDADD = $(pml_ldadd)
test_unit_check_pml_match_SOURCES = \
	test/unit/check_pml_match.c \
	test/unit/pml_naive.c
test_unit_check_pml_match_LDADD = $(pml_ldadd)
test_unit_check_pml_reuse_LDADD = pml_superpipe/libsuperpipe_core.a common/libonic_core.a \
	$(check_libs)
test_unit_check_pml_transfer_LDADD = $(pml_ldadd)
test_unit_check_message_LDADD = $(unit_ldadd)
test_unit_check_region_LDADD = $(unit_ldadd)
test_unit_check_refused_LDADD = $(unit_ldadd)
test_unit_check_region_layout_LDADD = $(unit_ldadd)
test_unit_check_address_LDADD = $(unit_ldadd)
test_unit_check_requirements_LDADD = $(unit_ldadd)
test_unit_check_selection_LDADD = $(check_libs)
test_unit_check_segment_LDADD = $(unit_ldadd)
test_unit_check_shadow_LDADD = $(unit_ldadd)
test_unit_check_sieve_LDADD = $(unit_ldadd)
test_unit_check_under_way_LDADD = $(unit_ldadd)
test_unit_check_reply_line_LDADD = $(unit_ldadd)
# With functions of its own in place of libibverbs's.
test_unit_check_verbs_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(verbs_cppflags)
test_unit_check_connections_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CPPFLAGS) $(verbs_cppflags)
test_unit_check_connections_LDADD = common/libonic_verbs.a common/libonic_core.a $(check_libs)
test_unit_check_whole_words_LDADD = $(unit_ldadd)
test_unit_check_verbs_LDADD = common/libonic_verbs.a common/libonic_core.a $(check_libs)
test_unit_check_verbs_port_LDADD = common/libonic_core.a $(check_libs)

# What needs no Check.
unit_scripts = test/unit/check_calibrate
TESTS += $(unit_scripts)

if HAVE_CHECK
check_PROGRAMS += $(unit_programs)
TESTS += $(unit_programs)

# After make check: whether what its tests have skipped is expected.
check-skips:
	@$(PYTHON3) $(srcdir)/test/skips.py --logs $(unit_programs:=.log)
else
EXTRA_PROGRAMS += $(unit_programs)
check-local:
	@echo "make check needs the unit test framework Check, which configure did not find." >&2
	@echo "  Debian: apt-get install check" >&2
	@echo "  elsewhere: configure --with-check=DIR" >&2
	@exit 1
endif

# ---- what the shared libraries leave to Open MPI ------------------------------------------------

# They do not link all that they use of it (config/onic_ompi.m4). This program does, and the linker
# names whatever is not there. A sanitized library takes its runtime from the program.
if !SANITIZERS
noinst_PROGRAMS += test/resolved
endif
test_resolved_LDADD = .libs/libompi_nic_common.so .libs/mca_coll_nicbarrier.so \
	.libs/mca_osc_nicstride.so $(OMPI_LDFLAGS) $(OMPI_PROGRAM_LIBS)
test_resolved_LDFLAGS = -Wl,--no-as-needed -Wl,--no-allow-shlib-undefined \
	-Wl,-rpath,$(abs_builddir)/.libs
test_resolved_DEPENDENCIES = $(component_PROGRAMS)

# ---- MPI programs: make check-mpi ----------------------------------------------------------------

EXTRA_LIBRARIES = test/mpi/libtestlib.a test/mpi/libkeep_loaded.a

# A library by name only, for the rules; its one object is linked as such.
test_mpi_libkeep_loaded_a_SOURCES = test/mpi/keep_loaded.c
if SANITIZERS
keep_loaded = test/mpi/keep_loaded.$(OBJEXT)
endif
test_mpi_libtestlib_a_SOURCES = \
	test/mpi/adapter.c \
	test/mpi/busy_lock.c \
	test/mpi/counter.c \
	test/mpi/meet.c \
	test/mpi/p2p.c \
	test/mpi/peers.c \
	test/mpi/phase.c \
	test/mpi/predefined.c \
	test/mpi/progress_accesses.c \
	test/mpi/progress_control.c \
	test/mpi/progress_epoch_rules.c \
	test/mpi/progress_epochs.c \
	test/mpi/progress_run.c \
	test/mpi/progress_send_rules.c \
	test/mpi/progress_sends.c \
	test/mpi/progress_sides.c \
	test/mpi/random_operations.c \
	test/mpi/random_type.c \
	test/mpi/rma.c \
	test/mpi/shutdown.c \
	test/mpi/testlib.c \
	test/mpi/testlib_checks.c \
	test/mpi/testlib_memory.c \
	test/mpi/testlib_window.c \
	test/mpi/transfer.c \
	test/mpi/typemap.c

# A program NAME is made from test/mpi/NAME.c and linked with these unless it says otherwise.
AM_DEFAULT_SOURCE_EXT = .c
LDADD = $(keep_loaded) test/mpi/libtestlib.a $(OMPI_LDFLAGS) $(OMPI_LIBS) -lm

mpi_programs = \
	test/mpi/accumulate_ops \
	test/mpi/accumulate_together \
	test/mpi/atomicity \
	test/mpi/barrier \
	test/mpi/barrier_away \
	test/mpi/barrier_computing \
	test/mpi/barrier_unreachable \
	test/mpi/barrier_cycles \
	test/mpi/barrier_died \
	test/mpi/barrier_differ \
	test/mpi/barrier_fallback \
	test/mpi/barrier_farewell \
	test/mpi/barrier_forgotten \
	test/mpi/barrier_lost \
	test/mpi/barrier_outstanding \
	test/mpi/barrier_spawn \
	test/mpi/barrier_stopped \
	test/mpi/barrier_threads \
	test/mpi/query \
	test/mpi/closed \
	test/mpi/connection_lost \
	test/mpi/counters \
	test/mpi/derived_types \
	test/mpi/detach_early \
	test/mpi/died \
	test/mpi/device \
	test/mpi/dynamic \
	test/mpi/dynamic_away \
	test/mpi/epochs_away \
	test/mpi/epochs_order \
	test/mpi/errors \
	test/mpi/errors_dynamic \
	test/mpi/errors_epochs \
	test/mpi/errors_range \
	test/mpi/errors_types \
	test/mpi/fence \
	test/mpi/fence_died \
	test/mpi/fetch_tail \
	test/mpi/finalize \
	test/mpi/flatten \
	test/mpi/flatten_shapes \
	test/mpi/fork \
	test/mpi/former_words \
	test/mpi/full_queue \
	test/mpi/give_way \
	test/mpi/jobs \
	test/mpi/keys \
	test/mpi/killed \
	test/mpi/credit_floor \
	test/mpi/kept_credit \
	test/mpi/wake \
	test/mpi/large \
	test/mpi/late \
	test/mpi/late_protocol \
	test/mpi/late_row \
	test/mpi/locks \
	test/mpi/measured \
	test/mpi/rdma_refused \
	test/mpi/refused \
	test/mpi/misuse \
	test/mpi/node \
	test/mpi/operations \
	test/mpi/operations_apart \
	test/mpi/operations_puts \
	test/mpi/p2p_absent \
	test/mpi/p2p_ahead \
	test/mpi/p2p_bound \
	test/mpi/p2p_callbacks \
	test/mpi/p2p_calls \
	test/mpi/p2p_collectives \
	test/mpi/p2p_comms \
	test/mpi/p2p_device \
	test/mpi/p2p_died \
	test/mpi/p2p_errors \
	test/mpi/p2p_first \
	test/mpi/p2p_held \
	test/mpi/p2p_flood \
	test/mpi/p2p_huge \
	test/mpi/p2p_order \
	test/mpi/p2p_others \
	test/mpi/p2p_probe \
	test/mpi/p2p_protocols \
	test/mpi/p2p_registered \
	test/mpi/p2p_reopen \
	test/mpi/p2p_stranger_died \
	test/mpi/p2p_stopped \
	test/mpi/p2p_strangers \
	test/mpi/p2p_threads \
	test/mpi/p2p_ways \
	test/mpi/parameters \
	test/mpi/progress_coll \
	test/mpi/progress_credit \
	test/mpi/progress_jobs \
	test/mpi/progress_leave \
	test/mpi/progress_p2p \
	test/mpi/progress_rma \
	test/mpi/pscw \
	test/mpi/put_get \
	test/mpi/soak \
	test/mpi/regressions \
	test/mpi/say \
	test/mpi/shared \
	test/mpi/shared_credit \
	test/mpi/shm_exhausted \
	test/mpi/nic \
	test/mpi/asleep \
	test/mpi/nic_cut \
	test/mpi/nic_refused \
	test/mpi/nic_places \
	test/mpi/soft_roce \
	test/mpi/spawn \
	test/mpi/threads \
	test/mpi/to_self \
	test/mpi/tool_orders \
	test/mpi/unasked \
	test/mpi/unreachable \
	test/mpi/windows \
	test/mpi/windows_cost \
	test/mpi/windows_differ
EXTRA_PROGRAMS += $(mpi_programs)

# These use the common library directly.
internal_ldadd = $(keep_loaded) test/mpi/libtestlib.a $(OMPI_LDFLAGS) $(OMPI_PROGRAM_LIBS) -lm
internal_ldflags = $(common_ldflags) -Wl,-rpath,$(abs_builddir)/.libs
internal_dependencies = $(keep_loaded) test/mpi/libtestlib.a .libs/libompi_nic_common.so

test_mpi_connection_lost_LDADD = $(internal_ldadd)
test_mpi_connection_lost_LDFLAGS = $(internal_ldflags)
test_mpi_connection_lost_DEPENDENCIES = $(internal_dependencies)
test_mpi_full_queue_LDADD = $(internal_ldadd)
test_mpi_full_queue_LDFLAGS = $(internal_ldflags)
test_mpi_full_queue_DEPENDENCIES = $(internal_dependencies)
test_mpi_late_protocol_LDADD = $(internal_ldadd)
test_mpi_late_protocol_LDFLAGS = $(internal_ldflags)
test_mpi_late_protocol_DEPENDENCIES = $(internal_dependencies)
test_mpi_late_row_LDADD = $(internal_ldadd)
test_mpi_late_row_LDFLAGS = $(internal_ldflags)
test_mpi_late_row_DEPENDENCIES = $(internal_dependencies)

# With -rdynamic, because the library finds by name what the program has in place of the C library's.
test_mpi_late_LDFLAGS = $(AM_LDFLAGS) -rdynamic

# With -rdynamic, because the library finds by name what the program has in place of Open MPI's.
test_mpi_device_LDADD = $(internal_ldadd)
test_mpi_device_LDFLAGS = $(internal_ldflags) -rdynamic
test_mpi_device_DEPENDENCIES = $(internal_dependencies)
test_mpi_p2p_device_LDADD = $(internal_ldadd)
test_mpi_p2p_device_LDFLAGS = $(internal_ldflags)
test_mpi_p2p_device_DEPENDENCIES = $(internal_dependencies)
test_mpi_p2p_reopen_LDADD = $(internal_ldadd)
test_mpi_p2p_reopen_LDFLAGS = $(internal_ldflags)
test_mpi_p2p_reopen_DEPENDENCIES = $(internal_dependencies)
test_mpi_p2p_others_LDADD = $(internal_ldadd)
test_mpi_p2p_others_LDFLAGS = $(internal_ldflags)
test_mpi_p2p_others_DEPENDENCIES = $(internal_dependencies)
test_mpi_p2p_strangers_LDADD = $(internal_ldadd)
test_mpi_p2p_strangers_LDFLAGS = $(internal_ldflags)
test_mpi_p2p_strangers_DEPENDENCIES = $(internal_dependencies)

# With -rdynamic, because libraries find by name what the program has in place of the C library's.
test_mpi_refused_LDFLAGS = $(AM_LDFLAGS) -rdynamic

# With -rdynamic, because libraries find by name what the program has in place of libibverbs's.
test_mpi_p2p_registered_LDFLAGS = -rdynamic

test_mpi_flatten_LDADD = $(internal_ldadd)
test_mpi_flatten_LDFLAGS = $(internal_ldflags)
test_mpi_flatten_DEPENDENCIES = $(internal_dependencies)

test_mpi_flatten_shapes_LDADD = $(internal_ldadd)
test_mpi_flatten_shapes_LDFLAGS = $(internal_ldflags)
test_mpi_flatten_shapes_DEPENDENCIES = $(internal_dependencies)

test_mpi_measured_LDADD = $(internal_ldadd)
test_mpi_measured_LDFLAGS = $(internal_ldflags)
test_mpi_measured_DEPENDENCIES = $(internal_dependencies)


test_mpi_node_LDADD = $(internal_ldadd)
test_mpi_node_LDFLAGS = $(internal_ldflags)
test_mpi_node_DEPENDENCIES = $(internal_dependencies)

test_mpi_say_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CPPFLAGS)
test_mpi_say_LDADD = $(internal_ldadd)
test_mpi_say_LDFLAGS = $(internal_ldflags)
test_mpi_say_DEPENDENCIES = $(internal_dependencies)

test_mpi_to_self_LDADD = $(internal_ldadd)
test_mpi_to_self_LDFLAGS = $(internal_ldflags)
test_mpi_to_self_DEPENDENCIES = $(internal_dependencies)

test_mpi_killed_LDADD = $(internal_ldadd)
test_mpi_killed_LDFLAGS = $(internal_ldflags)
test_mpi_killed_DEPENDENCIES = $(internal_dependencies)

test_mpi_operations_puts_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CPPFLAGS)
test_mpi_operations_puts_LDADD = $(internal_ldadd)
test_mpi_operations_puts_LDFLAGS = $(internal_ldflags)
test_mpi_operations_puts_DEPENDENCIES = $(internal_dependencies)

run_mpi = MPIRUN="$(MPIRUN)" OMPI_INFO="$(OMPI_INFO)" CC="$(CC)" $(PYTHON3) $(srcdir)/test/run
if THREAD_SANITIZER
run_mpi_builds = --build . --only-sanitized thread
else
if SANITIZERS
run_mpi_builds = --build . --only-sanitized memory
else
run_mpi_builds = --build . --sanitized-build sanitized/build
sanitized_build = sanitized-build
endif
endif

mpi-programs: all $(mpi_programs) $(app_programs)

# A source of their own for other trees, because a directory that was configured in place cannot be
# that of another build: made from what `make dist` would take.
sanitized-source:
	@mkdir -p sanitized
	$(MAKE) distdir distdir=sanitized/src

# Compiled in two thirds of the time that -O2 takes.
configure_sanitized = test -f Makefile || { \
	eval set -- "`./../../config.status --config`" && \
	../src/configure -q "$$@" CFLAGS='-g1 -O1'

# Of the programs only those that are to run in it, which is known when the components are there.
sanitized-build: all sanitized-source
	@mkdir -p sanitized/build
	cd sanitized/build && { $(configure_sanitized) --enable-sanitizers=address,undefined; }; } && \
	    $(MAKE) all
	programs=`$(run_mpi) $(run_mpi_builds) $(RUNFLAGS) --list | \
	    sed -n 's#.*/sanitized/build/\(\(test/mpi\|perf/apps\)/[^ ]*\).*#\1#p' | sort -u`; \
	cd sanitized/build && $(MAKE) $$programs

# ThreadSanitizer: the unit tests that start threads (but check_pack, in which they race on purpose),
# and MPI programs in which threads of one process meet, the helper threads of the components among
# them. It does not see other processes. Nothing else is built: check-TESTS would build all unit tests.
# Engine datagram is run as lossy, which is the same with more to do for its helper thread.
tsan_units = test/unit/check_owned_lock \
	test/unit/check_life \
	test/unit/check_pipeline_transfers \
	test/unit/check_nicbarrier_conformance \
	test/unit/check_nicbarrier_team \
	test/unit/check_reply_line
tsan_programs = test/mpi/barrier_away \
	test/mpi/barrier_outstanding \
	test/mpi/barrier_threads \
	test/mpi/operations_apart \
	test/mpi/wake \
	test/mpi/locks \
	test/mpi/p2p_threads \
	test/mpi/query \
	test/mpi/threads
tsan_rows = --ranks 2,3 --pmls ob1 --windows allocate,dynamic --methods auto,pack \
	--protocols auto,pipeline --engines auto,put2,lossy

if THREAD_SANITIZER
AM_TESTS_ENVIRONMENT = \
	CK_TIMEOUT_MULTIPLIER=5; export CK_TIMEOUT_MULTIPLIER; \
	TSAN_OPTIONS="$${TSAN_OPTIONS-suppressions=$(abs_srcdir)/test/suppressions/tsan.txt}"; \
	export TSAN_OPTIONS;

tsan-build: $(component_PROGRAMS) $(tsan_programs) $(tsan_units)

check-tsan: tsan-build
	@failed=""; \
	names=`echo '$(tsan_programs)' | sed 's|test/mpi/||g; s/  */|/g'`; \
	$(MAKE) check-TESTS check_PROGRAMS= TESTS="$(tsan_units)" || failed="$$failed check"; \
	ONIC_TEST_SLOW=1 $(run_mpi) $(run_mpi_builds) $(tsan_rows) --filter "^($$names)\$$" $(RUNFLAGS) || \
	    failed="$$failed $$names"; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }
else
tsan-build: sanitized-source
	@mkdir -p sanitized/tsan
	cd sanitized/tsan && { $(configure_sanitized) --enable-sanitizers=thread; }; } && \
	    $(MAKE) tsan-build

check-tsan: tsan-build
	cd sanitized/tsan && $(MAKE) check-tsan
endif

# What test/run says of methods, ranks, kinds of window, point-to-point layers, sanitizers or not.
check-mpi: mpi-programs $(sanitized_build)
	@test -n "$(PYTHON3)" || { echo "check-mpi needs python3 (Debian: apt-get install python3)"; exit 1; }
	$(PYTHON3) $(srcdir)/test/progress-table test/mpi
	$(run_mpi) $(run_mpi_builds) $(RUNFLAGS)

# Lines that unit tests and MPI tests run, in coverage/lines.json. COVERAGE_BEFORE names an earlier such
# file: fails where a file has lost more than a point.
coverage: sanitized-source
	@mkdir -p coverage
	cd coverage && { test -f Makefile || { \
	    eval set -- "`../config.status --config`" && ../sanitized/src/configure -q "$$@" \
	        CFLAGS='-O1 --coverage -fprofile-update=atomic'; }; } && \
	    find . -name '*.gcda' -delete && $(MAKE) check && $(MAKE) check-mpi sanitized_build= \
	        run_mpi_builds='--build .' RUNFLAGS='$(RUNFLAGS)'
	$(srcdir)/test/coverage sanitized/src coverage coverage/lines.json $(COVERAGE_BEFORE)

check-mpi-all: mpi-programs $(sanitized_build)
	@test -n "$(PYTHON3)" || { echo "check-mpi needs python3 (Debian: apt-get install python3)"; exit 1; }
	$(run_mpi) $(run_mpi_builds) --all $(RUNFLAGS)

# What jobs that are killed leave behind: nothing.
check-killed: all test/mpi/late
	MPIRUN="$(MPIRUN)" OMPI_INFO="$(OMPI_INFO)" $(srcdir)/test/killed .

# Installed into a home of its own and used from there, then uninstalled. Not with sanitizers,
# because mpirun and ompi_info, which load the component too, are without their runtime.
if SANITIZERS
check-install check-configure:
	@$(PYTHON3) $(srcdir)/test/skips.py $@ "this build has sanitizers"
else
check-install: all test/mpi/fence
	MAKE="$(MAKE)" MPIRUN="$(MPIRUN)" OMPI_INFO="$(OMPI_INFO)" CC="$(CC)" \
	    $(srcdir)/test/install test/mpi/fence

check-configure: all
	MAKE="$(MAKE)" OMPI_INFO="$(OMPI_INFO)" CC="$(CC)" QUICK="$(QUICK)" $(srcdir)/test/configure
endif

# The demo, ./run, make deb and the recipe of Spack.
check-tools: all
	@MAKE="$(MAKE)" $(PYTHON3) $(srcdir)/test/tools

# The lines in the comments of examples/.
check-examples: all
	@$(srcdir)/test/examples --build .

clean-local:
	rm -rf .libs explore figures coverage sanitized check-configure-home check-install-home perf/mpich

EXTRA_DIST += \
	test/apps/README.md \
	test/apps/coarrays.txt \
	test/apps/hpccinf.txt \
	test/apps/mpi4py_matrix.py \
	test/apps/petsc_window.py \
	test/apps/run \
	test/apps/suites.bash \
	test/apps/water.nw \
	$(unit_scripts) \
	test/configure \
	test/arm \
	test/distro \
	test/install \
	test/killed \
	test/coverage \
	test/documents \
	test/examples \
	test/progress-table \
	test/run \
	test/skips.py \
	test/soak \
	test/skips.txt \
	test/tools \
	test/suppressions/lsan.txt \
	test/suppressions/tsan.txt \
	test/suppressions/ubsan.txt

# ---- every order of threads' steps: make check-explore -------------------------------------------

# EXPLOREFLAGS=--all without a limit of runs; others: test/explore/run --help.
check-explore:
	@test -n "$(PYTHON3)" || { echo "check-explore needs python3 (Debian: apt-get install python3)"; exit 1; }
	@$(PYTHON3) $(srcdir)/test/explore/run --build . $(EXPLOREFLAGS)

EXTRA_DIST += test/explore

# ---- for all inputs up to a bound: make check-proof ----------------------------------------------

check-proof:
	@test -n "$(PYTHON3)" || { echo "check-proof needs python3 (Debian: apt-get install python3)"; exit 1; }
	@$(PYTHON3) $(srcdir)/test/proof/run --build .

EXTRA_DIST += test/proof

# ---- decoders of what peers send: make check-fuzz ------------------------------------------------

fuzz_programs = \
	test/fuzz/fuzz_address \
	test/fuzz/fuzz_queue \
	test/fuzz/fuzz_layout \
	test/fuzz/fuzz_nicbarrier \
	test/fuzz/fuzz_nicbarrier_endpoint \
	test/fuzz/fuzz_message \
	test/fuzz/fuzz_superpipe
EXTRA_PROGRAMS += $(fuzz_programs)

fuzz_ldadd = osc_nicstride/libnicstride_core.a common/libonic_core.a

test_fuzz_fuzz_queue_SOURCES = test/fuzz/fuzz_queue.c test/fuzz/seeds.c
test_fuzz_fuzz_queue_LDADD = common/libonic_core.a
test_fuzz_fuzz_queue_LDFLAGS = $(FUZZ_LDFLAGS)
test_fuzz_fuzz_address_SOURCES = test/fuzz/fuzz_address.c test/fuzz/seeds.c
test_fuzz_fuzz_address_LDADD = common/libonic_core.a
test_fuzz_fuzz_address_LDFLAGS = $(FUZZ_LDFLAGS)

test_fuzz_fuzz_layout_SOURCES = test/fuzz/fuzz_layout.c test/fuzz/seeds.c
test_fuzz_fuzz_layout_LDADD = $(fuzz_ldadd)
test_fuzz_fuzz_layout_LDFLAGS = $(FUZZ_LDFLAGS)

test_fuzz_fuzz_nicbarrier_SOURCES = test/fuzz/fuzz_nicbarrier.c test/fuzz/seeds.c
test_fuzz_fuzz_nicbarrier_LDADD = coll_nicbarrier/libnicbarrier_core.a
test_fuzz_fuzz_nicbarrier_LDFLAGS = $(FUZZ_LDFLAGS)

test_fuzz_fuzz_nicbarrier_endpoint_SOURCES = test/fuzz/fuzz_nicbarrier_endpoint.c test/fuzz/seeds.c
test_fuzz_fuzz_nicbarrier_endpoint_LDADD = coll_nicbarrier/libnicbarrier_core.a
test_fuzz_fuzz_nicbarrier_endpoint_LDFLAGS = $(FUZZ_LDFLAGS)

test_fuzz_fuzz_message_SOURCES = test/fuzz/fuzz_message.c test/fuzz/seeds.c
test_fuzz_fuzz_message_LDADD = $(fuzz_ldadd)
test_fuzz_fuzz_message_LDFLAGS = $(FUZZ_LDFLAGS)

test_fuzz_fuzz_superpipe_SOURCES = test/fuzz/fuzz_superpipe.c test/fuzz/seeds.c
test_fuzz_fuzz_superpipe_LDADD = pml_superpipe/libsuperpipe_core.a
test_fuzz_fuzz_superpipe_LDFLAGS = $(FUZZ_LDFLAGS)

# Seconds for all targets together. One input that takes 20 is a finding: what peers send must cost little.
FUZZ_SECONDS = 60

if LIBFUZZER
# One each, so that make runs several at a time.
fuzz_runs = $(fuzz_programs:=.fuzzed)

fuzz-build: $(fuzz_programs)

check-fuzz: $(fuzz_runs)

$(fuzz_runs): $(fuzz_programs)
	@n=0; for f in $(fuzz_programs); do n=`expr $$n + 1`; done; f=`echo $@ | sed 's/[.]fuzzed$$//'`; \
	echo "check-fuzz: $$f"; \
	./$$f -max_total_time=`expr $(FUZZ_SECONDS) / $$n + 1` -timeout=20 -verbosity=0 -print_funcs=0
else
fuzz-build: sanitized-source
	@echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -x c -fsanitize=fuzzer -o sanitized/fuzzer-probe - || \
	    { echo "check-fuzz needs clang with libFuzzer (Debian: apt-get install clang libclang-rt-dev)"; exit 1; }
	@mkdir -p sanitized/fuzz
	cd sanitized/fuzz && { $(configure_sanitized) CC=clang --enable-fuzzing --enable-sanitizers=address,undefined; }; } && \
	    $(MAKE) fuzz-build

check-fuzz: fuzz-build
	cd sanitized/fuzz && $(MAKE) check-fuzz
endif

# ---- everything ----------------------------------------------------------------------------------

check-all: check check-mpi-all check-tsan check-fabric check-killed check-configure check-install check-tools check-examples check-fuzz check-format check-includes check-documents
	$(MAKE) distcheck

.PHONY: $(fuzz_runs) check-all coverage check-configure check-examples check-explore check-fuzz check-install check-killed check-mpi check-mpi-all check-proof check-skips \
	check-tools check-tsan mpi-programs \
	fuzz-build sanitized-build sanitized-source tsan-build
