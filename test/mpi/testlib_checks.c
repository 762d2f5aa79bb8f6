/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "test/mpi/testlib.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** A broken component fails everywhere at once: the first few lines tell enough. */
#define REPORTS_MAX 12

static atomic_long passed_checks, failed_checks;

static void report(const char *file, int line, const char *format, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof(text), format, args);
    fprintf(stderr, "%s:%d: %s: rank %d: %s\n", file, line, tl_name(), tl_rank(), text);
}

/** Counts; true where this failure is still to be printed. */
static bool count_check(bool ok)
{
    if (ok) {
        atomic_fetch_add(&passed_checks, 1);
        return false;
    }
    return atomic_fetch_add(&failed_checks, 1) < REPORTS_MAX;
}

bool tl_check(bool ok, const char *file, int line, const char *format, ...)
{
    if (count_check(ok)) {
        va_list args;

        va_start(args, format);
        report(file, line, format, args);
        va_end(args);
    }
    return ok;
}

bool tl_check_bytes(const void *got, const void *want, size_t n, const char *file, int line,
                    const char *format, ...)
{
    const unsigned char *g = got, *e = want;
    bool ok = n == 0 || memcmp(got, want, n) == 0;

    if (count_check(ok)) {
        va_list args;
        size_t at = 0;

        while (g[at] == e[at])
            at++;
        va_start(args, format);
        report(file, line, format, args);
        va_end(args);
        fprintf(stderr, "    byte %zu of %zu is 0x%02x, not 0x%02x\n", at, n, g[at], e[at]);
    }
    return ok;
}

bool tl_check_fill(const void *got, unsigned char value, size_t n, const char *file, int line,
                   const char *format, ...)
{
    const unsigned char *g = got;
    size_t at = 0;

    while (at < n && g[at] == value)
        at++;
    if (count_check(at == n)) {
        va_list args;

        va_start(args, format);
        report(file, line, format, args);
        va_end(args);
        fprintf(stderr, "    byte %zu of %zu is 0x%02x, not 0x%02x\n", at, n, g[at], value);
    }
    return at == n;
}

bool tl_check_mpi(int code, int error_class, const char *call, const char *file, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "success";
    int class = MPI_SUCCESS, length;

    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
    } else if (error_class == MPI_SUCCESS) {
        return true;
    }
    return tl_check(class == error_class, file, line, "%s: class %d (%s), not class %d", call,
                    class, text, error_class);
}

long tl_passed(void)
{
    return passed_checks;
}

long tl_failed(void)
{
    return failed_checks;
}

static struct {
    int to, from; /**< the file, and standard error itself */
    char text[1 << 16];
} listening;

void tl_listen(void)
{
    // Not a nameless file of /tmp, which not every file system has.
    listening.to = memfd_create("heard", 0);
    listening.from = dup(STDERR_FILENO);
    // Threads that write at the same time do not share a position in such a file, but its end.
    if (listening.to < 0 || listening.from < 0 || fcntl(listening.to, F_SETFL, O_APPEND) != 0)
        tl_die("no file for standard error");
    (void)fflush(stderr);
    (void)dup2(listening.to, STDERR_FILENO);
}

const char *tl_heard(void)
{
    (void)fflush(stderr);
    (void)dup2(listening.from, STDERR_FILENO);
    (void)close(listening.from);
    const ssize_t n = pread(listening.to, listening.text, sizeof(listening.text) - 1, 0);

    listening.text[n > 0 ? n : 0] = '\0';
    (void)close(listening.to);
    return listening.text;
}

int tl_count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}
