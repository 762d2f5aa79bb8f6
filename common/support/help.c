/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/support/help.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/support/spare.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"

/* ---- lines ----------------------------------------------------------------------------------- */

atomic_uint onic_say_count;

/** The first onic_say_count; with the mutex. */
static char *waiting[ONIC_SAY_MAX];
static pthread_mutex_t waiting_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool later;

void onic_say_later(void)
{
    later = true;
}

bool onic_says_later(void)
{
    return later;
}

/** Takes over `line`. */
static void enqueue(char *line)
{
    pthread_mutex_lock(&waiting_mutex);
    const unsigned n = atomic_load(&onic_say_count);
    if (n < ONIC_SAY_MAX) {
        waiting[n] = line;
        atomic_store(&onic_say_count, n + 1);
    } else {
        free(line);
    }
    pthread_mutex_unlock(&waiting_mutex);
}

/** The line; NULL where memory is exhausted. */
static char *line_of(const char *format, va_list args)
{
    char *line = NULL;
    return vasprintf(&line, format, args) >= 0 ? line : NULL;
}

/** Takes over `line`. */
static void print(char *line)
{
    if (later) {
        enqueue(line);
        return;
    }
    opal_output(0, "%s", line);
    free(line);
}

void onic_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = line_of(format, args);
    va_end(args);
    if (line != NULL)
        print(line);
}

void onic_say_waiting_texts(void)
{
    pthread_mutex_lock(&waiting_mutex);
    for (unsigned i = 0; i < atomic_load(&onic_say_count); i++) {
        opal_output(0, "%s", waiting[i]);
        free(waiting[i]);
    }
    atomic_store(&onic_say_count, 0);
    pthread_mutex_unlock(&waiting_mutex);
}

/* ---- texts that are printed once ------------------------------------------------------------- */

/** The folder of the object that has this address in it, into `dir`. */
static bool dir_of(const void *inside, char *dir, size_t cap)
{
    Dl_info self;
    const char *slash = NULL;

    if (dladdr(inside, &self) != 0 && self.dli_fname != NULL)
        slash = strrchr(self.dli_fname, '/');
    if (slash == NULL || (size_t)(slash - self.dli_fname) >= cap)
        return false;
    memcpy(dir, self.dli_fname, (size_t)(slash - self.dli_fname));
    dir[slash - self.dli_fname] = '\0';
    return true;
}

void onic_add_help_dir(const void *inside, const char *otherwise)
{
    char dir[PATH_MAX];

    opal_show_help_add_dir(dir_of(inside, dir, sizeof(dir)) ? dir : otherwise);
}

bool onic_component_dir(char *dir, size_t cap)
{
    return dir_of((const void *)(uintptr_t)&onic_component_dir, dir, cap);
}

/** FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/** What has started the job on this node: where that keeps its files, or the parent, which may be a
 *  shell between the two. */
static uint64_t starter(void)
{
    const char *place = getenv("PMIX_SERVER_TMPDIR");
    return place != NULL ? hash_of(place) : (uint64_t)getppid();
}

/** Is this process the first of job `job` on this node to say so? A socket's abstract name can be
 *  had once, needs no file, and is given back by the kernel when its owner ends. Until then it is
 *  kept on purpose. In doubt the text is printed: better twice than never. */
static bool first_to_say(unsigned long job, const char *text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int len =
        snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ompi-nic/%lx/%llx/%016llx", job,
                 (unsigned long long)starter(), (unsigned long long)hash_of(text));
    int fd;
    do {
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    } while (fd < 0 && onic_spare_give(ONIC_FOR_GOOD));
    if (fd < 0)
        return true;
    if (bind(fd, (const struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0)
        return true;
    const bool others = errno == EADDRINUSE;
    onic_close(fd);
    return !others;
}

void onic_help(const char *file, const char *topic, ...)
{
    va_list args;
    if (onic_says_later()) {
        /* Open MPI's reader of help files is for MPI threads. */
        onic_say("ompi-nic: %s (see %s)", topic, file);
        return;
    }
    va_start(args, topic);
    char *text = opal_show_help_vstring(file, topic, true, args);
    va_end(args);
    if (text == NULL)
        opal_output(0, "ompi-nic: %s (the help file %s is not there)", topic, file);
    else if (first_to_say((unsigned long)OPAL_PROC_MY_NAME.jobid, text))
        opal_output(0, "%s", text);
    free(text);
}

void onic_say_once(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = line_of(format, args);
    va_end(args);
    if (line != NULL && first_to_say(0, line))
        print(line);
    else
        free(line);
}

void onic_say_descriptors(void)
{
    struct rlimit r;
    if (onic_spare_none_left() && getrlimit(RLIMIT_NOFILE, &r) == 0)
        onic_say_once("ompi-nic: a process has no file descriptor left (ulimit -n: %llu), and "
                      "connections need some: raise that limit",
                      (unsigned long long)r.rlim_cur);
}
