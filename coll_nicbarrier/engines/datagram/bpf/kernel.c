/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: programs and maps; see kernel.h. */
#include "coll_nicbarrier/engines/datagram/bpf/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/program.skel.h"

static struct nicbarrier_program *program;

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

int nicbarrier_bpf_load(void)
{
    (void)libbpf_set_print(quiet);
    program = nicbarrier_program__open_and_load();
    return program != NULL ? 0 : -1;
}

void nicbarrier_bpf_unload(void)
{
    nicbarrier_program__destroy(program);
}

nicbarrier_bpf_programs_t nicbarrier_bpf_programs(void)
{
    return (nicbarrier_bpf_programs_t){.in = bpf_program__fd(program->progs.nicbarrier_in),
                                       .out = bpf_program__fd(program->progs.nicbarrier_out)};
}

/* ---- attachment ------------------------------------------------------------------------------ */

/** Identifies our filter among those of an interface. */
enum { HANDLE = 0x6e62, PRIORITY = 0x6e62 };

static const enum bpf_tc_attach_point ways[] = {BPF_TC_INGRESS, BPF_TC_EGRESS};

int nicbarrier_bpf_attach(int interface)
{
    const nicbarrier_bpf_programs_t p = nicbarrier_bpf_programs();
    const int fd[] = {p.in, p.out};
    for (int i = 0; i < 2; i++) {
        LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = interface, .attach_point = ways[i]);
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY, .prog_fd = fd[i],
                    .flags = BPF_TC_F_REPLACE);
        const int rc = bpf_tc_hook_create(&hook);
        /* Filters of others may be there, too. */
        const int error = rc != 0 && rc != -EEXIST ? rc : bpf_tc_attach(&hook, &opts);
        if (error != 0)
            return -error;
    }
    return 0;
}

void nicbarrier_bpf_detach(int interface)
{
    (void)libbpf_set_print(quiet);
    for (int i = 0; i < 2; i++) {
        LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = interface, .attach_point = ways[i]);
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY);
        (void)bpf_tc_detach(&hook, &opts);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** Adds both entries of a group. @return 0, or an errno */
static int add(const nicbarrier_bpf_id_t *id, int page)
{
    void *empty = calloc(1, bpf_map__value_size(program->maps.groups));
    int error = empty == NULL ? ENOMEM : 0;
    if (error == 0 &&
        bpf_map_update_elem(bpf_map__fd(program->maps.pages), id, &page, BPF_NOEXIST) != 0)
        error = errno;
    else if (error == 0 &&
             bpf_map_update_elem(bpf_map__fd(program->maps.groups), id, empty, BPF_NOEXIST) != 0) {
        error = errno;
        nicbarrier_bpf_remove(id);
    }
    free(empty);
    return error;
}

int nicbarrier_bpf_install(const nicbarrier_bpf_id_t *id)
{
    LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
    const int page = bpf_map_create(BPF_MAP_TYPE_ARRAY, "nicbarrier_page", sizeof(uint32_t),
                                    sizeof(nicbarrier_bpf_page_t), 1, &opts);
    const int error = page < 0 ? errno : add(id, page);
    if (error == 0)
        return page;
    if (page >= 0)
        close(page);
    errno = error;
    return -1;
}

void nicbarrier_bpf_remove(const nicbarrier_bpf_id_t *id)
{
    (void)bpf_map_delete_elem(bpf_map__fd(program->maps.groups), id);
    /* The kernel waits here until programs that began earlier have ended. */
    (void)bpf_map_delete_elem(bpf_map__fd(program->maps.pages), id);
}
