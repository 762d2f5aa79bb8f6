/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the kernel's refusals to copy say of later copies. */
#include "common/transport/shm/refused.h"

#include "test/unit/unit.h"

/** This memory is not copied, but other may be; or nothing is learned. */
START_TEST(memory)
{
    ck_assert_int_eq(onic_refused_by(0), ONIC_REFUSED_MEMORY);
    ck_assert_int_eq(onic_refused_by(EFAULT), ONIC_REFUSED_MEMORY);
    ck_assert_int_eq(onic_refused_by(ENOMEM), ONIC_REFUSED_NOW);
    ck_assert_int_eq(onic_refused_by(ESRCH), ONIC_REFUSED_NOW);
}
END_TEST

/** Every other error is for good, or each call would begin with one; none counts as a copy. */
START_TEST(process)
{
    for (int error = 0; error < 256; error++) {
        const onic_refused_t refused = onic_refused_by(error);

        UNIT_CHECK(refused != ONIC_REFUSED_NOT);
        if (error != 0 && error != EFAULT && error != ENOMEM && error != ESRCH)
            UNIT_CHECK(refused == ONIC_REFUSED_PROCESS);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("refused", UNIT_ONCE(memory), UNIT_ONCE(process));
}
