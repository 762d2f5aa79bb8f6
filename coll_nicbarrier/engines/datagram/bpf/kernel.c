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
#include <string.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/program.skel.h"

struct nicbarrier_bpf_kernel {
    struct nicbarrier_program *program;
    int groups, pages; /**< descriptors of the maps */
    int interface;     /**< the interface it is attached to; 0: none */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

nicbarrier_bpf_kernel_t *nicbarrier_bpf_load(void)
{
    nicbarrier_bpf_kernel_t *k = calloc(1, sizeof(*k));
    if (k == NULL)
        return NULL;
    (void)libbpf_set_print(quiet);
    k->program = nicbarrier_program__open_and_load();
    if (k->program == NULL) {
        free(k);
        return NULL;
    }
    k->groups = bpf_map__fd(k->program->maps.groups);
    k->pages = bpf_map__fd(k->program->maps.pages);
    return k;
}

nicbarrier_bpf_programs_t nicbarrier_bpf_programs(const nicbarrier_bpf_kernel_t *k)
{
    return (nicbarrier_bpf_programs_t){.in = bpf_program__fd(k->program->progs.nicbarrier_in),
                                       .out = bpf_program__fd(k->program->progs.nicbarrier_out)};
}

/* ---- attachment ------------------------------------------------------------------------------ */

/** Identifies our filter among those of an interface. */
enum { HANDLE = 0x6e62, PRIORITY = 0x6e62 };

static const enum bpf_tc_attach_point ways[] = {BPF_TC_INGRESS, BPF_TC_EGRESS};

void nicbarrier_bpf_sweep(int interface)
{
    (void)libbpf_set_print(quiet);
    for (int i = 0; i < 2; i++) {
        LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = interface, .attach_point = ways[i]);
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY);
        (void)bpf_tc_detach(&hook, &opts);
    }
}

static int attach_tc(int interface, const nicbarrier_bpf_programs_t *programs)
{
    const int program[] = {programs->in, programs->out};
    for (int i = 0; i < 2; i++) {
        LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = interface, .attach_point = ways[i]);
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY,
                    .prog_fd = program[i], .flags = BPF_TC_F_REPLACE);
        const int rc = bpf_tc_hook_create(&hook);
        /* Filters of others may be there, too. */
        const int error = rc != 0 && rc != -EEXIST ? rc : bpf_tc_attach(&hook, &opts);
        if (error != 0)
            return -error;
    }
    return 0;
}

static void detach(nicbarrier_bpf_kernel_t *k)
{
    if (k->interface != 0)
        nicbarrier_bpf_sweep(k->interface);
    k->interface = 0;
}

int nicbarrier_bpf_attach(nicbarrier_bpf_kernel_t *k, int interface)
{
    const nicbarrier_bpf_programs_t programs = nicbarrier_bpf_programs(k);
    k->interface = interface;
    const int error = attach_tc(interface, &programs);
    if (error != 0)
        detach(k);
    return error;
}

void nicbarrier_bpf_unload(nicbarrier_bpf_kernel_t *k)
{
    detach(k);
    nicbarrier_program__destroy(k->program);
    free(k);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** A page with the initial state; -1 if it cannot be made. */
static int make_page(const nicbarrier_bpf_plan_t *plan)
{
    LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
    const uint32_t zero = 0;
    nicbarrier_bpf_page_t page;
    const int fd =
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "nicbarrier_page", sizeof(zero), sizeof(page), 1, &opts);
    if (fd < 0)
        return -1;
    memset(&page, 0, sizeof(page));
    page.key = plan->id.key;
    page.rule = plan->rule;
    page.word = plan->rule.completed | (plan->rule.failed ? NICBARRIER_WORD_FAILED : 0);
    page.entered = page.enter = plan->rule.entered;
    if (bpf_map_update_elem(fd, &zero, &page, BPF_ANY) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int nicbarrier_bpf_install(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_plan_t *plan)
{
    const int page = make_page(plan);
    if (page < 0)
        return -1;
    bool done = bpf_map_update_elem(k->pages, &plan->id, &page, BPF_NOEXIST) == 0;
    /* Programs find the group once this entry exists, so it is added last. */
    if (done && bpf_map_update_elem(k->groups, &plan->id, &plan->group, BPF_NOEXIST) != 0) {
        const int error = errno;
        nicbarrier_bpf_remove(k, &plan->id);
        errno = error;
        done = false;
    }
    if (!done) {
        const int error = errno;
        close(page);
        errno = error;
    }
    return done ? page : -1;
}

void nicbarrier_bpf_remove(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_id_t *id)
{
    (void)bpf_map_delete_elem(k->groups, id);
    /* The kernel waits here until programs that began earlier have ended. */
    (void)bpf_map_delete_elem(k->pages, id);
}
