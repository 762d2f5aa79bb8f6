/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Links the components and the common library with all of Open MPI, so that what they use and what
 * is not there is told when they are built. It is never run.
 */
int main(void)
{
    return 0;
}
