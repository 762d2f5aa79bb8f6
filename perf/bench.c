/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "perf/bench.h"

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_compute(double seconds)
{
    double end = bench_now() + seconds;
    while (bench_now() < end) {
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), compare_doubles);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

double bench_percentile(double *v, int n, double part)
{
    qsort(v, (size_t)n, sizeof(*v), compare_doubles);
    int at = (int)(part * n);
    return v[at < n ? at : n - 1];
}

static void no_memory(size_t bytes)
{
    fprintf(stderr, "out of memory: %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, BENCH_EXIT_NO_MEMORY);
}

void *bench_alloc(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, (size_t)sysconf(_SC_PAGESIZE), bytes ? bytes : 1) != 0)
        no_memory(bytes);
    memset(p, 0, bytes);
    return p;
}

void *bench_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        no_memory(bytes);
    return p;
}

/* ---- Options --------------------------------------------------------------------------------- */

int bench_parse_size(const char *text, size_t *size_p)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    if (end == text || *text == '-' || end[shift != 0] != '\0' || errno != 0 || v == 0 ||
        v > (SIZE_MAX >> shift))
        return -1;
    *size_p = (size_t)v << shift;
    return 0;
}

/** Calls `parse` for each comma-separated word; it returns -1 for an unknown word. */
static int parse_list(const char *text, int (*parse)(const char *, void *, size_t *), void *arg,
                      bench_list_t *list_p)
{
    char *copy = strdup(text), *save = NULL;
    int rc = copy == NULL ? -1 : 0;
    list_p->n = 0;
    for (char *word = rc ? NULL : strtok_r(copy, ",", &save); word != NULL && rc == 0;
         word = strtok_r(NULL, ",", &save)) {
        if (list_p->n == BENCH_LIST_MAX || parse(word, arg, &list_p->v[list_p->n]) != 0) {
            fprintf(stderr, "'%s' in '%s' is unknown, or one of more than %d entries\n", word, text,
                    BENCH_LIST_MAX);
            rc = -1;
        }
        list_p->n++;
    }
    free(copy);
    return rc == 0 && list_p->n > 0 ? 0 : -1;
}

static int parse_size_word(const char *word, void *zero_name, size_t *size_p)
{
    if (zero_name != NULL && strcmp(word, zero_name) == 0) {
        *size_p = 0;
        return 0;
    }
    return bench_parse_size(word, size_p);
}

int bench_parse_sizes(const char *text, const char *zero_name, bench_list_t *list_p)
{
    return parse_list(text, parse_size_word, (void *)(uintptr_t)zero_name, list_p);
}

typedef struct names {
    const char *const *names;
    int n;
} names_t;

static int parse_name_word(const char *word, void *arg, size_t *index_p)
{
    const names_t *names = arg;
    for (int i = 0; i < names->n; i++) {
        if (strcmp(word, names->names[i]) == 0) {
            *index_p = (size_t)i;
            return 0;
        }
    }
    return -1;
}

int bench_parse_names(const char *text, const char *const *names, int n, bench_list_t *list_p)
{
    names_t arg = {names, n};
    if (parse_list(text, parse_name_word, &arg, list_p) == 0)
        return 0;
    fprintf(stderr, "known:");
    for (int i = 0; i < n; i++)
        fprintf(stderr, " %s", names[i]);
    fprintf(stderr, "\n");
    return -1;
}

int bench_parse_int(const char *what, const char *text, long min, long max, int *value_p)
{
    char *end = NULL;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < min || v > max) {
        fprintf(stderr, "%s: '%s' is not an integer in %ld..%ld\n", what, text, min, max);
        return -1;
    }
    *value_p = (int)v;
    return 0;
}

const char *bench_size_text(size_t bytes, char text[24])
{
    if (bytes >= 1048576 && bytes % 1048576 == 0)
        snprintf(text, 24, "%zuM", bytes >> 20);
    else if (bytes >= 1024 && bytes % 1024 == 0)
        snprintf(text, 24, "%zuK", bytes >> 10);
    else
        snprintf(text, 24, "%zu", bytes);
    return text;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct bench_json {
    FILE *file;
    const char *path;
    bool any_object;
    bool any_field;
};

int bench_json_open(const char *path, const char *program, bench_json_t **json_p)
{
    *json_p = NULL;
    if (path == NULL)
        return 0;
    bench_json_t *j = calloc(1, sizeof(*j));
    FILE *file = fopen(path, "w");
    if (j == NULL || file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        free(j);
        if (file != NULL)
            fclose(file);
        return -1;
    }
    j->file = file;
    j->path = path;
    fprintf(file, "{\"program\": \"%s\", \"results\": [", program);
    *json_p = j;
    return 0;
}

void bench_json_begin(bench_json_t *j)
{
    if (j != NULL) {
        fprintf(j->file, "%s\n{", j->any_object ? "," : "");
        j->any_object = true;
        j->any_field = false;
    }
}

static void json_key(bench_json_t *j, const char *key)
{
    fprintf(j->file, "%s\"%s\": ", j->any_field ? ", " : "", key);
    j->any_field = true;
}

void bench_json_str(bench_json_t *j, const char *key, const char *value)
{
    if (j != NULL) {
        json_key(j, key);
        fprintf(j->file, "\"%s\"", value);
    }
}

void bench_json_bool(bench_json_t *j, const char *key, bool value)
{
    if (j != NULL) {
        json_key(j, key);
        fprintf(j->file, "%s", value ? "true" : "false");
    }
}

void bench_json_num(bench_json_t *j, const char *key, double value)
{
    if (j != NULL) {
        json_key(j, key);
        if (isfinite(value))
            fprintf(j->file, "%.9g", value);
        else
            fprintf(j->file, "null");
    }
}

void bench_json_end(bench_json_t *j)
{
    if (j != NULL) {
        fprintf(j->file, "}");
        fflush(j->file);
    }
}

int bench_json_close(bench_json_t *j)
{
    if (j == NULL)
        return 0;
    fprintf(j->file, "\n]}\n");
    bool bad = ferror(j->file) != 0;
    bad = fclose(j->file) != 0 || bad;
    if (bad)
        fprintf(stderr, "%s: could not be written: %s\n", j->path, strerror(errno));
    free(j);
    return bad ? -1 : 0;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

int bench_run_open(bench_run_t *run, MPI_Comm comm, const char *json, const char *program)
{
    int rank, opened = 0;
    *run = (bench_run_t){.comm = comm};
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        opened = bench_json_open(json, program, &run->json);
    MPI_Bcast(&opened, 1, MPI_INT, 0, comm);
    if (opened == 0)
        run->line = bench_line_open(comm);
    return opened;
}

int bench_run_close(bench_run_t *run)
{
    bench_line_close(run->line);
    int rc = bench_json_close(run->json) != 0 ? BENCH_EXIT_USAGE
             : run->measured == 0             ? BENCH_EXIT_NO_CASE
             : run->wrong > 0                 ? BENCH_EXIT_WRONG_DATA
                                              : BENCH_EXIT_OK;
    MPI_Bcast(&rc, 1, MPI_INT, 0, run->comm);
    return rc;
}
