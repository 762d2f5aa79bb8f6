/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/predefined.h"

#include <string.h>

#include "test/mpi/testlib.h"

/** An entry before its sizes are known. */
typedef struct entry {
    const char *name;
    MPI_Datatype type;
    unsigned class;
    field_kind_t first, second;
    size_t second_at; /**< 0: right behind the first */
} entry_t;

#define INTEGER(t)                                                                                 \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_INTEGER, FIELD_INTEGER, FIELD_NONE, 0                              \
    }
#define OTHER(t)                                                                                   \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_OTHER_INTEGER, FIELD_INTEGER, FIELD_NONE, 0                        \
    }
#define FLOAT(t)                                                                                   \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_FLOAT, FIELD_FLOAT, FIELD_NONE, 0                                  \
    }
#define COMPLEX(t)                                                                                 \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_COMPLEX, FIELD_FLOAT, FIELD_FLOAT, 0                               \
    }
#define LOGICAL(t)                                                                                 \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_LOGICAL, FIELD_TRUTH, FIELD_NONE, 0                                \
    }
#define TEXT(t)                                                                                    \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_TEXT, FIELD_INTEGER, FIELD_NONE, 0                                 \
    }
#define PAIR(t, kind, at)                                                                          \
    {                                                                                              \
#t, MPI_##t, PREDEFINED_PAIR, kind, FIELD_INTEGER, at                                      \
    }

#define PAIR_OF(ctype)                                                                             \
    offsetof(                                                                                      \
        struct {                                                                                   \
            ctype value;                                                                           \
            int index;                                                                             \
        },                                                                                         \
        index)

/** The index-th of the list; false behind it. The handles are no constants everywhere. */
static bool entry_get(int index, entry_t *entry)
{
    const entry_t list[] = {
        INTEGER(SIGNED_CHAR),
        INTEGER(UNSIGNED_CHAR),
        INTEGER(SHORT),
        INTEGER(UNSIGNED_SHORT),
        INTEGER(INT),
        INTEGER(UNSIGNED),
        INTEGER(LONG),
        INTEGER(UNSIGNED_LONG),
        INTEGER(LONG_LONG),
        INTEGER(UNSIGNED_LONG_LONG),
        INTEGER(INT8_T),
        INTEGER(INT16_T),
        INTEGER(INT32_T),
        INTEGER(INT64_T),
        INTEGER(UINT8_T),
        INTEGER(UINT16_T),
        INTEGER(UINT32_T),
        INTEGER(UINT64_T),
        OTHER(AINT),
        OTHER(OFFSET),
        OTHER(COUNT),
        OTHER(INTEGER),
        OTHER(INTEGER1),
        OTHER(INTEGER2),
        OTHER(INTEGER4),
        OTHER(INTEGER8),
#ifdef MPI_INTEGER16
        OTHER(INTEGER16),
#endif
        FLOAT(FLOAT),
        FLOAT(DOUBLE),
        FLOAT(LONG_DOUBLE),
        FLOAT(REAL),
        FLOAT(DOUBLE_PRECISION),
        FLOAT(REAL4),
        FLOAT(REAL8),
        FLOAT(REAL16),
        COMPLEX(C_FLOAT_COMPLEX),
        COMPLEX(C_DOUBLE_COMPLEX),
        COMPLEX(C_LONG_DOUBLE_COMPLEX),
        COMPLEX(COMPLEX),
        COMPLEX(DOUBLE_COMPLEX),
        COMPLEX(COMPLEX8),
        COMPLEX(COMPLEX16),
        COMPLEX(COMPLEX32),
        COMPLEX(CXX_FLOAT_COMPLEX),
        COMPLEX(CXX_DOUBLE_COMPLEX),
        COMPLEX(CXX_LONG_DOUBLE_COMPLEX),
        LOGICAL(C_BOOL),
        LOGICAL(CXX_BOOL),
        LOGICAL(LOGICAL),
        {"BYTE", MPI_BYTE, PREDEFINED_BYTE, FIELD_INTEGER, FIELD_NONE, 0},
        TEXT(CHAR),
        TEXT(WCHAR),
        TEXT(CHARACTER),
        PAIR(FLOAT_INT, FIELD_FLOAT, PAIR_OF(float)),
        PAIR(DOUBLE_INT, FIELD_FLOAT, PAIR_OF(double)),
        PAIR(LONG_DOUBLE_INT, FIELD_FLOAT, PAIR_OF(long double)),
        PAIR(SHORT_INT, FIELD_INTEGER, PAIR_OF(short)),
        PAIR(2INT, FIELD_INTEGER, PAIR_OF(int)),
        PAIR(LONG_INT, FIELD_INTEGER, PAIR_OF(long)),
        {"2REAL", MPI_2REAL, PREDEFINED_PAIR, FIELD_FLOAT, FIELD_FLOAT, 0},
        {"2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, PREDEFINED_PAIR, FIELD_FLOAT, FIELD_FLOAT, 0},
        {"2INTEGER", MPI_2INTEGER, PREDEFINED_PAIR, FIELD_INTEGER, FIELD_INTEGER, 0},
    };

    if (index >= (int)(sizeof(list) / sizeof(*list)))
        return false;
    *entry = list[index];
    return true;
}

static bool is_long_double(MPI_Datatype type)
{
    return type == MPI_LONG_DOUBLE || type == MPI_C_LONG_DOUBLE_COMPLEX ||
           type == MPI_CXX_LONG_DOUBLE_COMPLEX || type == MPI_LONG_DOUBLE_INT;
}

/** Sizes and places of the fields. */
static void measure(predefined_t *p, const entry_t *e)
{
    MPI_Aint lb, extent;
    int size;

    MPI_Type_size(e->type, &size);
    MPI_Type_get_extent(e->type, &lb, &extent);
    p->extent = (size_t)extent;
    p->size[0] = (size_t)size;
    if (p->fields == 2) {
        p->size[1] = e->second_at > 0 ? sizeof(int) : (size_t)size / 2;
        p->size[0] = (size_t)size - p->size[1];
        p->at[1] = e->second_at > 0 ? e->second_at : p->size[0];
    }
    for (int f = 0; f < p->fields; f++) {
        p->significant[f] = p->size[f];
        /* x86's long double has 10 bytes of value in 16 of memory */
        if (p->kind[f] == FIELD_FLOAT && is_long_double(e->type) && p->size[f] == 16 &&
            __LDBL_MANT_DIG__ == 64)
            p->significant[f] = 10;
    }
}

static bool exists(MPI_Datatype type)
{
    int size = 0;

    return type != MPI_DATATYPE_NULL && MPI_Type_size(type, &size) == MPI_SUCCESS && size > 0;
}

bool predefined_get(int index, predefined_t *type)
{
    entry_t e;

    for (int i = 0; entry_get(i, &e); i++) {
        if (exists(e.type) && index-- == 0) {
            *type = (predefined_t){.name = e.name,
                                   .type = e.type,
                                   .class = e.class,
                                   .fields = e.second == FIELD_NONE ? 1 : 2,
                                   .kind = {e.first, e.second}};
            measure(type, &e);
            return true;
        }
    }
    return false;
}

/** An integer of any width in this machine's byte order, sign extended. */
static void set_integer(unsigned char *at, size_t size, int value)
{
    const int one = 1;
    bool little = *(const char *)&one == 1;

    memset(at, value < 0 ? 0xFF : 0, size);
    at[little ? 0 : size - 1] = (unsigned char)value;
}

static void set_float(const predefined_t *type, int f, unsigned char *at, int value)
{
    if (type->size[f] == sizeof(float)) {
        memcpy(at, &(float){(float)value}, sizeof(float));
    } else if (type->size[f] == sizeof(double)) {
        memcpy(at, &(double){value}, sizeof(double));
    } else if (type->significant[f] < type->size[f]) {
        memcpy(at, &(long double){value}, type->significant[f]);
#ifdef __SIZEOF_FLOAT128__
    } else if (type->size[f] == sizeof(__float128)) {
        memcpy(at, &(__float128){value}, sizeof(__float128));
#endif
    } else {
        set_integer(at, type->size[f], value);
    }
}

void predefined_fill(const predefined_t *type, void *elements, int count, uint64_t seed)
{
    unsigned char *element = elements;
    tl_rng_t rng = tl_rng(seed, 1);

    for (int i = 0; i < count; i++, element += type->extent) {
        for (int f = 0; f < type->fields; f++) {
            unsigned char *at = element + type->at[f];

            if (type->kind[f] == FIELD_TRUTH)
                set_integer(at, type->size[f], (int)tl_range(&rng, 0, 1));
            else if (type->kind[f] == FIELD_FLOAT)
                set_float(type, f, at, (int)tl_range(&rng, -4, 4));
            else
                set_integer(at, type->size[f], (int)tl_range(&rng, -3, 6));
        }
    }
}

void predefined_copy(const predefined_t *type, const void *from, void *to, int count)
{
    const unsigned char *a = from;
    unsigned char *b = to;

    for (int i = 0; i < count; i++, a += type->extent, b += type->extent)
        for (int f = 0; f < type->fields; f++)
            memcpy(b + type->at[f], a + type->at[f], type->size[f]);
}

bool predefined_equal(const predefined_t *type, const void *a, const void *b, int count)
{
    const unsigned char *x = a, *y = b;

    for (int i = 0; i < count; i++, x += type->extent, y += type->extent) {
        for (int f = 0; f < type->fields; f++)
            if (memcmp(x + type->at[f], y + type->at[f], type->significant[f]) != 0)
                return false;
    }
    return true;
}

bool predefined_gaps_equal(const predefined_t *type, const void *a, const void *b, int count,
                           size_t length)
{
    const unsigned char *x = a, *y = b;
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        for (int f = 0; f < type->fields; f++) {
            size_t field = (size_t)i * type->extent + type->at[f];

            if (memcmp(x + at, y + at, field - at) != 0)
                return false;
            at = field + type->size[f];
        }
    }
    return memcmp(x + at, y + at, length - at) == 0;
}
