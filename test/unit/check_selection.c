/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whom the parameters osc, pml and coll name. */
#include "common/support/selection.h"

#include "test/unit/unit.h"

START_TEST(names)
{
    UNIT_CHECK(onic_selects("nicstride", "nicstride"));
    UNIT_CHECK(onic_selects("nicstride,ucx", "nicstride"));
    UNIT_CHECK(onic_selects("rdma,nicstride,ucx", "nicstride"));
    UNIT_CHECK(onic_selects("nicstride2,nicstride", "nicstride"));
    UNIT_CHECK(!onic_selects(NULL, "nicstride"));
    UNIT_CHECK(!onic_selects("", "nicstride"));
    UNIT_CHECK(!onic_selects("rdma,ucx", "nicstride"));
    UNIT_CHECK(!onic_selects("nicstride2", "nicstride"));
    UNIT_CHECK(!onic_selects("my_nicstride,nicstride_", "nicstride"));
}
END_TEST

START_TEST(exclusions)
{
    UNIT_CHECK(!onic_selects("^nicstride", "nicstride"));
    UNIT_CHECK(!onic_selects("^ucx,nicstride", "nicstride"));
}
END_TEST

int main(void)
{
    return UNIT_RUN("selection", UNIT_ONCE(names), UNIT_ONCE(exclusions));
}
