/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Runs a fuzz target where libFuzzer is not at hand: mutates valid inputs for some time.
 *
 *     fuzz_NAME [-t SECONDS] [-s SEED] [FILE or DIRECTORY ...]
 *
 * Understands -max_total_time=SECONDS and -seed=SEED, too, and passes over other options of
 * libFuzzer, so that both are called in the same way.
 *
 * Begins with the target's own seeds and the files. Mutants that the target accepts join the pool,
 * so that mutations add up. With -t 0 every seed and file is run once and nothing else. An input
 * that makes the target crash is left in `crash-SEED` in the current directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/fuzz/fuzz.h"

enum { INPUT_MAX = 4096, POOL_MAX = 512 };

typedef struct input {
    size_t len;
    uint8_t bytes[INPUT_MAX];
} input_t;

/* Provided by the sanitizers, which end the process without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void));
#pragma weak __sanitizer_set_death_callback

static input_t pool[POOL_MAX];
static unsigned pool_size;
static unsigned pool_seeds; /* of these many at the beginning none is ever replaced */
static input_t current;
static char crash_name[64];
static uint64_t state;

static uint64_t next_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** A number below `n`; 0 for n == 0. */
static size_t below(size_t n)
{
    return n > 0 ? (size_t)(next_random() % n) : 0;
}

/* ---- crashes -------------------------------------------------------------------------------- */

static void save_current(void)
{
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd >= 0) {
        if (write(fd, current.bytes, current.len) != (ssize_t)current.len)
            (void)unlink(crash_name);
        (void)close(fd);
    }
}

static void on_signal(int number)
{
    save_current();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void catch_crashes(void)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};

    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(save_current);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        /* A sanitizer's own handlers say more; they call back. */
        if (__sanitizer_set_death_callback == NULL || signals[i] == SIGABRT ||
            signals[i] == SIGALRM)
            (void)signal(signals[i], on_signal);
    }
}

/* ---- mutations ------------------------------------------------------------------------------ */

static void insert(input_t *in, size_t at, const uint8_t *bytes, size_t n)
{
    n = n < INPUT_MAX - in->len ? n : INPUT_MAX - in->len;
    memmove(in->bytes + at + n, in->bytes + at, in->len - at);
    memcpy(in->bytes + at, bytes, n);
    in->len += n;
}

static void cut(input_t *in, size_t at, size_t n)
{
    n = n < in->len - at ? n : in->len - at;
    memmove(in->bytes + at, in->bytes + at + n, in->len - at - n);
    in->len -= n;
}

/** Numbers at which fixed fields go wrong: the limits of each width, and what is beside them. */
static void set_number(input_t *in, size_t at)
{
    static const uint64_t edges[] = {0,          8,         64,        UINT8_MAX, UINT16_MAX,
                                     UINT32_MAX, INT32_MAX, INT64_MAX, UINT64_MAX};
    uint64_t value = edges[below(sizeof(edges) / sizeof(edges[0]))] + below(5) - 2;
    size_t width = (size_t)1 << below(4);

    if (at + width <= in->len)
        memcpy(in->bytes + at, &value, width);
}

static void mutate(input_t *in)
{
    static const uint8_t edges[] = {0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    const input_t *other = &pool[below(pool_size)];
    size_t at = below(in->len + 1);
    uint8_t bytes[16];
    uint64_t random = next_random();
    size_t from;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = random & 1 ? edges[below(sizeof(edges))] : (uint8_t)next_random();
    switch (below(9)) {
    case 0:
        insert(in, at, bytes, 1 + below(sizeof(bytes)));
        break;
    case 1:
        cut(in, at, 1 + below(4));
        break;
    case 2:
        cut(in, at, in->len);
        break;
    case 3: /* a part of another input */
        from = below(other->len);
        insert(in, at, other->bytes + from, 1 + below(other->len - from));
        break;
    case 4: /* a part of itself again */
        from = below(in->len);
        random = below(in->len - from < 16 ? in->len - from : 16);
        memcpy(bytes, in->bytes + from, (size_t)random);
        insert(in, at, bytes, (size_t)random);
        break;
    case 5:
        set_number(in, at);
        break;
    case 6:
        if (at < in->len)
            in->bytes[at] ^= (uint8_t)(1 << below(8));
        break;
    default:
        for (size_t i = 0; i < 1 + (random >> 60) && at + i < in->len; i++)
            in->bytes[at + i] = bytes[i];
        break;
    }
}

/* ---- running -------------------------------------------------------------------------------- */

static int run_current(void)
{
    /* A copy of just its length, so that a sanitizer sees reads behind the end. */
    uint8_t *exact = malloc(current.len + (current.len == 0));
    int verdict;

    if (exact == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    memcpy(exact, current.bytes, current.len);
    verdict = LLVMFuzzerTestOneInput(exact, current.len);
    free(exact);
    return verdict;
}

static void keep_current(void)
{
    size_t slot = pool_seeds + below(POOL_MAX - pool_seeds);

    pool[pool_size < POOL_MAX ? pool_size++ : slot] = current;
}

/** At most half of the pool is seeds. */
static void keep_seed(void)
{
    if (pool_seeds < POOL_MAX / 2) {
        keep_current();
        pool_seeds = pool_size;
    }
}

static void load_file(const char *name)
{
    FILE *f = fopen(name, "rb");

    if (f == NULL) {
        fprintf(stderr, "%s: %s\n", name, strerror(errno));
        exit(2);
    }
    current.len = fread(current.bytes, 1, sizeof(current.bytes), f);
    (void)fclose(f);
    (void)run_current();
    keep_seed();
}

static void load_path(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char name[4096];

    if (dir == NULL) {
        load_file(path);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            load_file(name);
        }
    }
    (void)closedir(dir);
}

static void load_seeds(void)
{
    for (unsigned i = 0; (current.len = onic_fuzz_seed(i, current.bytes, INPUT_MAX)) > 0; i++) {
        FUZZ_CHECK(run_current() == 0);
        keep_seed();
    }
    FUZZ_CHECK(pool_size > 0);
}

static void make_input(void)
{
    if (below(32) == 0) {
        current.len = below(512);
        for (size_t i = 0; i < current.len; i++)
            current.bytes[i] = (uint8_t)next_random();
        return;
    }
    current = pool[below(pool_size)];
    for (size_t n = 1 + below(4); n > 0; n--)
        mutate(&current);
}

static uint64_t run_for(double seconds, uint64_t *accepted)
{
    struct timespec begin;
    struct timespec now;
    uint64_t runs = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    now = begin;
    while ((double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) <
           seconds) {
        make_input();
        if (run_current() == 0) {
            ++*accepted;
            keep_current();
        }
        /* One input that takes this long is a finding: what peers send must cost little. */
        if (++runs % 64 == 0) {
            (void)alarm(20);
            (void)clock_gettime(CLOCK_MONOTONIC, &now);
        }
    }
    (void)alarm(0);
    return runs;
}

/** Sets `*value` to what follows `name` in `argv[*i]` or, for "-x", in the argument behind it. */
static bool option(char **argv, int *i, const char *name, const char **value)
{
    size_t n = strlen(name);

    if (strncmp(argv[*i], name, n) != 0)
        return false;
    *value = argv[*i] + n;
    if (**value == '\0' && n == 2 && argv[*i + 1] != NULL)
        *value = argv[++*i];
    return true;
}

int main(int argc, char **argv)
{
    double seconds = 10;
    uint64_t accepted = 0;
    uint64_t runs;
    const char *value;

    state = 1;
    for (int i = 1; i < argc; i++)
        if (option(argv, &i, "-max_total_time=", &value) || option(argv, &i, "-t", &value))
            seconds = strtod(value, NULL);
        else if (option(argv, &i, "-seed=", &value) || option(argv, &i, "-s", &value))
            state = strtoull(value, NULL, 0);
    (void)snprintf(crash_name, sizeof(crash_name), "crash-%llu", (unsigned long long)state);
    printf("seed %llu, %g seconds\n", (unsigned long long)state, seconds);
    (void)fflush(stdout);
    catch_crashes();
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-')
            load_path(argv[i]);
        else if (strcmp(argv[i], "-t") == 0 || strcmp(argv[i], "-s") == 0)
            i++;
    load_seeds();
    runs = run_for(seconds, &accepted);
    printf("%llu inputs, %llu of them accepted, no failure\n", (unsigned long long)runs,
           (unsigned long long)accepted);
    return 0;
}
