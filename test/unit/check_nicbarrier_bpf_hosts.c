/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The service of barriers in the kernel, nicbarrier-bpf, as processes without any privilege ask it:
 * what it refuses, and what others cannot do to a group. That barriers are right there,
 * check_nicbarrier_bpf_conformance tests.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "coll_nicbarrier/engines/datagram/bpf/service.h"
#include "test/unit/bpf_hosts.h"

enum { NOBODY = 65534, STRANGER = 65533 };

static const nicbarrier_bpf_id_t some = {.key = 7, .cookie = 100};

static nicbarrier_reason_t why;

/** Asks over a new connection for a group, which lives as long as that.
 *  @return the connection, or -1 and the reason */
static int group(uint32_t cookie)
{
    const nicbarrier_bpf_id_t id = {.key = 7, .cookie = cookie};
    const int fd = nicbarrier_bpf_local_connect("eth0");
    ck_assert_int_ge(fd, 0);
    const int page = nicbarrier_bpf_ask(fd, &id, &why);
    close(page >= 0 ? page : fd);
    return page >= 0 ? fd : -1;
}

/** What was there before is gone as soon as the service has looked. */
static int group_soon(uint32_t cookie)
{
    int fd;
    while ((fd = group(cookie)) < 0)
        (void)usleep(1000);
    return fd;
}

/** Sends bytes over a connection; the text of the reply, and the page that came with it. */
static const char *send_raw(int fd, const void *bytes, size_t len, int descriptor, int *page)
{
    static char text[NICBARRIER_BPF_REPLY];
    ck_assert_int_eq(nicbarrier_bpf_local_send(fd, bytes, len, descriptor), 0);
    const ssize_t n = nicbarrier_bpf_local_receive(fd, text, sizeof(text), page);
    ck_assert(n > 0 && text[n - 1] == '\0');
    return text;
}

START_TEST(requests)
{
    nicbarrier_bpf_request_t r = {.version = NICBARRIER_BPF_VERSION, .id = some};
    int page;
    bpf_hosts_go(0, NOBODY);
    const int fd = nicbarrier_bpf_local_connect("eth0");
    r.version++;
    ck_assert_str_eq(send_raw(fd, &r, sizeof(r), -1, &page), "another version of ompi-nic");
    r.version--;
    ck_assert_str_eq(send_raw(fd, &r, sizeof(r) - 1, -1, &page), "another version of ompi-nic");
    ck_assert_int_eq(page, -1);
    /* A descriptor that comes with a request is not kept. */
    ck_assert_str_eq(send_raw(fd, &r, sizeof(r), fd, &page), "");
    ck_assert_int_ge(page, 0);
    const nicbarrier_bpf_page_t *at = mmap(NULL, sizeof(*at), PROT_READ, MAP_SHARED, page, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    ck_assert(at->key == 0 && at->rule.nsteps == 0);
    r.id.cookie++;
    ck_assert_str_eq(send_raw(fd, &r, sizeof(r), -1, &page), "there is such a group");
    close(fd);
    close(group_soon(some.cookie));
}
END_TEST

/* As many groups as are allowed, and no more; they are gone when their process is. */
START_TEST(bounds)
{
    static int fd[NICBARRIER_BPF_GROUPS_OF_USER];
    int status = 0;
    bpf_hosts_go(0, NOBODY);
    const pid_t child = fork();
    if (child == 0) {
        for (uint32_t i = 0; i < NICBARRIER_BPF_GROUPS_OF_USER; i++)
            (void)group_soon(1000 + i);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    for (uint32_t i = 0; i < NICBARRIER_BPF_GROUPS_OF_USER; i++)
        fd[i] = group_soon(1000 + i);
    ck_assert_int_eq(group(1), -1);
    ck_assert_ptr_nonnull(strstr(why.text, "as many groups"));
    close(fd[0]);
    close(group_soon(1));
}
END_TEST

/* A group is there once, and another user cannot have it either. */
START_TEST(another_user)
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        bpf_hosts_go(0, NOBODY);
        (void)group_soon(some.cookie);
        if (write(ready[1], &byte, 1) == 1)
            (void)pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    bpf_hosts_go(0, STRANGER);
    ck_assert_int_eq(group(some.cookie), -1);
    ck_assert_str_eq(why.text, "there is such a group");
    close(group_soon(some.cookie + 1));
}
END_TEST

int main(void)
{
    const char *obstacle = bpf_hosts_obstacle();
    if (obstacle != NULL) {
        unit_skip(obstacle);
        return EXIT_SUCCESS;
    }
    if (!bpf_hosts_make(1))
        return EXIT_FAILURE;
    const int status = UNIT_RUN("nicbarrier_bpf_hosts", UNIT_ONCE(requests), UNIT_ONCE(bounds),
                                UNIT_ONCE(another_user));
    return bpf_hosts_remove() ? status : EXIT_FAILURE;
}
