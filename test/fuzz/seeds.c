/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Has libFuzzer begin with a target's own seeds: what has to have its length and its first bytes
 * right is hardly found by itself.
 */
#include <string.h>
#include <unistd.h>

#include "test/fuzz/fuzz.h"

enum { SEEDS = 256, INPUT_MAX = 4096, PATH = 64 };

static char directory[] = "/tmp/onic-fuzz-XXXXXX";
static char paths[SEEDS][PATH];
static unsigned written;

static void remove_all(void)
{
    while (written > 0)
        (void)unlink(paths[--written]);
    (void)rmdir(directory);
}

static void write_seed(const uint8_t *bytes, size_t len)
{
    (void)snprintf(paths[written], PATH, "%s/%u", directory, written);
    FILE *f = fopen(paths[written], "wb");
    FUZZ_CHECK(f != NULL && fwrite(bytes, 1, len, f) == len && fclose(f) == 0);
    written++;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char option[] = "-seed_inputs=";
    static char list[sizeof(option) + SEEDS * PATH];
    static uint8_t bytes[INPUT_MAX];
    char **more = calloc((size_t)*argc + 2, sizeof(*more));
    size_t len;

    FUZZ_CHECK(more != NULL && mkdtemp(directory) != NULL);
    (void)atexit(remove_all);
    strcpy(list, option);
    while (written < SEEDS && (len = onic_fuzz_seed(written, bytes, INPUT_MAX)) > 0) {
        FUZZ_CHECK(LLVMFuzzerTestOneInput(bytes, len) == 0);
        if (written > 0)
            strcat(list, ",");
        write_seed(bytes, len);
        strcat(list, paths[written - 1]);
    }
    FUZZ_CHECK(written > 0);
    memcpy(more, *argv, (size_t)*argc * sizeof(*more));
    more[(*argc)++] = list;
    *argv = more;
    return 0;
}
