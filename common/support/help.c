/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/support/help.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "opal/util/show_help.h"

/* ---- lines ----------------------------------------------------------------------------------- */

/** Prints as opal_output does, but by one write, which any thread may do. Takes over `text`; NULL
 *  where memory is exhausted. */
static void print(char *text)
{
    char host[256] = "", *line = NULL;

    (void)gethostname(host, sizeof(host) - 1);
    const size_t len = text != NULL ? strlen(text) : 0;
    const char *end = len > 0 && text[len - 1] == '\n' ? "" : "\n";
    const int n = len > 0 ? asprintf(&line, "[%s:%05d] %s%s", host, (int)getpid(), text, end) : -1;
    if (n >= 0)
        (void)!write(STDERR_FILENO, line, (size_t)n);
    if (n >= 0)
        free(line);
    free(text);
}

/** NULL where memory is exhausted. */
static char *text_of(const char *format, va_list args)
{
    char *text = NULL;

    return vasprintf(&text, format, args) >= 0 ? text : NULL;
}

void onic_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(text_of(format, args));
    va_end(args);
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

/** True if this process is the first on this node to print the text, of all that one mpirun has
 *  started. A socket's abstract name can be had once, needs no file, and is given back by the
 *  kernel when its owner ends. Until then it is kept on purpose. In doubt the text is printed:
 *  better twice than never. */
static bool first_to_say(const char *text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ompi-nic/%llx/%016llx",
                             (unsigned long long)starter(), (unsigned long long)hash_of(text));
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    if (bind(fd, (const struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0)
        return true;
    const bool others = errno == EADDRINUSE;
    close(fd);
    return !others;
}

/** Takes over `text`. */
static void print_once(char *text)
{
    if (text != NULL && first_to_say(text))
        print(text);
    else
        free(text);
}

/** The text of a topic, printed by `print_it`. */
static void help(const char *file, const char *topic, va_list args, void (*print_it)(char *text))
{
    char *text = opal_show_help_vstring(file, topic, true, args);

    if (text != NULL)
        print_it(text);
    else
        onic_say("ompi-nic: %s (the help file %s is not there)", topic, file);
}

void onic_help(const char *file, const char *topic, ...)
{
    va_list args;
    va_start(args, topic);
    help(file, topic, args, print_once);
    va_end(args);
}

void onic_help_each(const char *file, const char *topic, ...)
{
    va_list args;
    va_start(args, topic);
    help(file, topic, args, print);
    va_end(args);
}

void onic_say_once(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_once(text_of(format, args));
    va_end(args);
}
