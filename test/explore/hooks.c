/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the compiler calls before accesses to memory (-fsanitize=thread), and what the linker
 *  has in place of functions of the C library (--wrap). */
#define _GNU_SOURCE
#include "test/explore/engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HERE  __builtin_return_address(0)
#define AT(p) ((uintptr_t)(p))

/* ---- accesses that are not atomic ------------------------------------------------------------ */

static void plain(uintptr_t addr, size_t len, bool writes, const void *from)
{
    if (!machine_inside)
        return;
    machine_inside = false;
    if (machine_is_word(addr))
        machine_word_access(addr, len, writes, from);
    else
        memory_access(addr, len, writes, false, from);
    machine_inside = true;
}

#define PLAIN(n)                                                                                   \
    void __tsan_read##n(void *p);                                                                  \
    void __tsan_read##n(void *p)                                                                   \
    {                                                                                              \
        plain(AT(p), n, false, HERE);                                                              \
    }                                                                                              \
    void __tsan_write##n(void *p);                                                                 \
    void __tsan_write##n(void *p)                                                                  \
    {                                                                                              \
        plain(AT(p), n, true, HERE);                                                               \
    }                                                                                              \
    void __tsan_unaligned_read##n(void *p);                                                        \
    void __tsan_unaligned_read##n(void *p)                                                         \
    {                                                                                              \
        plain(AT(p), n, false, HERE);                                                              \
    }                                                                                              \
    void __tsan_unaligned_write##n(void *p);                                                       \
    void __tsan_unaligned_write##n(void *p)                                                        \
    {                                                                                              \
        plain(AT(p), n, true, HERE);                                                               \
    }                                                                                              \
    void __tsan_volatile_read##n(void *p);                                                         \
    void __tsan_volatile_read##n(void *p)                                                          \
    {                                                                                              \
        plain(AT(p), n, false, HERE);                                                              \
    }                                                                                              \
    void __tsan_volatile_write##n(void *p);                                                        \
    void __tsan_volatile_write##n(void *p)                                                         \
    {                                                                                              \
        plain(AT(p), n, true, HERE);                                                               \
    }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *p, size_t len);
void __tsan_read_range(void *p, size_t len)
{
    plain(AT(p), len, false, HERE);
}

void __tsan_write_range(void *p, size_t len);
void __tsan_write_range(void *p, size_t len)
{
    plain(AT(p), len, true, HERE);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from)
{
    (void)from;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* ---- atomic accesses ------------------------------------------------------------------------- */

/** Enters the engine, and notes the access among those that are not atomic. */
static void enter(uintptr_t addr, size_t len, bool writes, const void *from)
{
    if (!machine_inside) {
        fprintf(stderr, "explore: an atomic access of the engine\n");
        abort();
    }
    machine_inside = false;
    (void)addr, (void)len, (void)writes, (void)from;
}

/** The step has been taken; before, the access would have been of the step before. */
static void leave(uintptr_t addr, size_t len, bool writes, const void *from)
{
    machine_inside = false;
    memory_access(addr, len, writes, true, from);
    machine_inside = true;
}

static uint64_t exchange(uint64_t old, uint64_t arg)
{
    (void)old;
    return arg;
}

static uint64_t add(uint64_t old, uint64_t arg)
{
    return old + arg;
}

static uint64_t sub(uint64_t old, uint64_t arg)
{
    return old - arg;
}

static uint64_t and (uint64_t old, uint64_t arg)
{
    return old & arg;
}

static uint64_t or (uint64_t old, uint64_t arg)
{
    return old | arg;
}

static uint64_t xor (uint64_t old, uint64_t arg) { return old ^ arg; }

#define CHANGE(n, type, name, how)                                                                 \
    type __tsan_atomic##n##_##name(type *p, type v, int order);                                    \
    type __tsan_atomic##n##_##name(type *p, type v, int order)                                     \
    {                                                                                              \
        enter(AT(p), sizeof(type), true, HERE);                                                    \
        const type old = (type)machine_rmw(AT(p), sizeof(type), how, v, order, HERE);              \
        leave(AT(p), sizeof(type), true, HERE);                                                    \
        return old;                                                                                \
    }

#define COMPARE(n, type, name)                                                                     \
    int __tsan_atomic##n##_##name(type *p, type *old, type v, int order, int failed);              \
    int __tsan_atomic##n##_##name(type *p, type *old, type v, int order, int failed)               \
    {                                                                                              \
        uint64_t found = *old;                                                                     \
        enter(AT(p), sizeof(type), true, HERE);                                                    \
        const bool done = machine_cas(AT(p), sizeof(type), &found, v, order, failed, HERE);        \
        leave(AT(p), sizeof(type), done, HERE);                                                    \
        *old = (type)found;                                                                        \
        return done;                                                                               \
    }

#define ATOMIC(n, type)                                                                            \
    type __tsan_atomic##n##_load(const type *p, int order);                                        \
    type __tsan_atomic##n##_load(const type *p, int order)                                         \
    {                                                                                              \
        enter(AT(p), sizeof(type), false, HERE);                                                   \
        const type value = (type)machine_load(AT(p), sizeof(type), order, HERE);                   \
        leave(AT(p), sizeof(type), false, HERE);                                                   \
        return value;                                                                              \
    }                                                                                              \
    void __tsan_atomic##n##_store(type *p, type v, int order);                                     \
    void __tsan_atomic##n##_store(type *p, type v, int order)                                      \
    {                                                                                              \
        enter(AT(p), sizeof(type), true, HERE);                                                    \
        machine_store(AT(p), sizeof(type), v, order, HERE);                                        \
        leave(AT(p), sizeof(type), true, HERE);                                                    \
    }                                                                                              \
    CHANGE(n, type, exchange, exchange)                                                            \
    CHANGE(n, type, fetch_add, add)                                                                \
    CHANGE(n, type, fetch_sub, sub)                                                                \
    CHANGE(n, type, fetch_and, and)                                                                \
    CHANGE(n, type, fetch_or, or)                                                                  \
    CHANGE(n, type, fetch_xor, xor)                                                                \
    COMPARE(n, type, compare_exchange_strong)                                                      \
    COMPARE(n, type, compare_exchange_weak)
    ATOMIC(8, uint8_t) ATOMIC(16, uint16_t) ATOMIC(32, uint32_t) ATOMIC(64, uint64_t)

        void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    machine_inside = false;
    machine_fence(order, HERE);
    machine_inside = true;
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* ---- of the C library ------------------------------------------------------------------------ */

void *__real_memcpy(void *to, const void *from, size_t len);
void *__wrap_memcpy(void *to, const void *from, size_t len);
void *__wrap_memcpy(void *to, const void *from, size_t len)
{
    plain(AT(from), len, false, HERE);
    plain(AT(to), len, true, HERE);
    return __real_memcpy(to, from, len);
}

void *__real_memmove(void *to, const void *from, size_t len);
void *__wrap_memmove(void *to, const void *from, size_t len);
void *__wrap_memmove(void *to, const void *from, size_t len)
{
    plain(AT(from), len, false, HERE);
    plain(AT(to), len, true, HERE);
    return __real_memmove(to, from, len);
}

void *__real_memset(void *to, int c, size_t len);
void *__wrap_memset(void *to, int c, size_t len);
void *__wrap_memset(void *to, int c, size_t len)
{
    plain(AT(to), len, true, HERE);
    return __real_memset(to, c, len);
}

int __real_memcmp(const void *a, const void *b, size_t len);
int __wrap_memcmp(const void *a, const void *b, size_t len);
int __wrap_memcmp(const void *a, const void *b, size_t len)
{
    plain(AT(a), len, false, HERE);
    plain(AT(b), len, false, HERE);
    return __real_memcmp(a, b, len);
}

static void *allocate(size_t len, size_t align)
{
    machine_inside = false;
    void *block = memory_alloc(len, align);
    machine_inside = true;
    return block;
}

void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);
void *__wrap_malloc(size_t len)
{
    return machine_inside ? allocate(len, 16) : __real_malloc(len);
}

void *__real_calloc(size_t n, size_t len);
void *__wrap_calloc(size_t n, size_t len);
void *__wrap_calloc(size_t n, size_t len)
{
    if (!machine_inside)
        return __real_calloc(n, len);
    void *block = allocate(n * len, 16);
    return __wrap_memset(block, 0, n * len);
}

void *__real_aligned_alloc(size_t align, size_t len);
void *__wrap_aligned_alloc(size_t align, size_t len);
void *__wrap_aligned_alloc(size_t align, size_t len)
{
    return machine_inside ? allocate(len, align) : __real_aligned_alloc(align, len);
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
    if (!machine_inside) {
        __real_free(block);
    } else if (block != NULL) {
        machine_inside = false;
        memory_free(block, HERE);
        machine_inside = true;
    }
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    machine_inside = false;
    (void)machine_pause(false, HERE);
    machine_inside = true;
    return 0;
}

/** Futexes alone. Times do not pass: who is not woken sleeps for ever. */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    va_start(args, number);
    uint32_t *word = va_arg(args, uint32_t *);
    const int what = va_arg(args, int);
    const uint32_t value = va_arg(args, uint32_t);
    va_end(args);
    if (number != SYS_futex)
        search_fail("a system call that the engine does not know");
    machine_inside = false;
    if ((what & FUTEX_CMD_MASK) == FUTEX_WAIT)
        machine_futex_wait(AT(word), value, HERE);
    else
        machine_futex_wake(AT(word), HERE);
    machine_inside = true;
    return 0;
}

/* ---- of the target --------------------------------------------------------------------------- */

void explore_words(void *at, size_t len)
{
    machine_words(AT(at), len);
}

void explore_pause(void)
{
    machine_inside = false;
    (void)machine_pause(false, HERE);
    machine_inside = true;
}

bool explore_pause_for_a_time(void)
{
    machine_inside = false;
    const bool over = machine_pause(true, HERE);
    machine_inside = true;
    return over;
}

unsigned explore_choose(unsigned n)
{
    machine_inside = false;
    const unsigned choice = machine_me == MAIN ? 0 : search_choose(n);
    search_trace("      chooses %u of %u\n", choice, n);
    machine_inside = true;
    return choice;
}

void explore_futex_wait(const void *word, uint32_t value)
{
    machine_inside = false;
    machine_futex_wait(AT(word), value, HERE);
    machine_inside = true;
}

void explore_futex_wake(const void *word)
{
    machine_inside = false;
    machine_futex_wake(AT(word), HERE);
    machine_inside = true;
}

unsigned explore_me(void)
{
    return machine_me;
}

void explore_say(const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    search_trace("      %s\n", text);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void ask_binutils(const char *command, char *text, size_t len)
{
    FILE *f = popen(command, "r");
    text[0] = '\0';
    if (f == NULL)
        return;
    if (fgets(text, (int)len, f) != NULL)
        text[strcspn(text, "\n")] = '\0';
    pclose(f);
}

void hooks_place(const void *from, char *text, size_t len)
{
    char command[200], found[300];
    snprintf(command, sizeof(command), "addr2line -s -e /proc/%d/exe %p 2>/dev/null", (int)getpid(),
             (const void *)((const char *)from - 1));
    ask_binutils(command, found, sizeof(found));
    snprintf(text, len, "%.*s", (int)len - 1, found[0] != '\0' ? found : "?");
}

extern char __data_start[], _end[];

void hooks_name(uintptr_t addr, char *text, size_t len)
{
    char command[300], found[200] = "";
    if (addr == 0) {
        text[0] = '\0';
        return;
    }
    if (addr >= (uintptr_t)__data_start && addr < (uintptr_t)_end) {
        snprintf(command, sizeof(command),
                 "nm -n /proc/%d/exe | awk -v a=x%016lx '\"x\" $1 <= a && length($3) "
                 "{n=$3; b=$1} END {print b, n}'",
                 (int)getpid(), (unsigned long)addr);
        ask_binutils(command, found, sizeof(found));
    }
    unsigned long begin;
    char name[80];
    if (sscanf(found, "%lx %79s", &begin, name) == 2)
        snprintf(text, len, "%s+%lu", name, (unsigned long)addr - begin);
    else
        snprintf(text, len, "%#lx", (unsigned long)addr);
}
