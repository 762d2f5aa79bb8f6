/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Texts for the user that must not be lost. */
#ifndef ONIC_HELP_H
#define ONIC_HELP_H

#include "common/support/export.h"

/** Tells Open MPI to look for help texts beside the object that holds `inside`, which may have been
 *  moved since it was installed; in `otherwise` where that cannot be found out. */
ONIC_EXPORT void onic_add_help_dir(const void *inside, const char *otherwise);

/**
 * Prints the text `topic` of a help file, with its arguments put in as printf does. Equal texts are
 * printed once by all processes of a job on a node together.
 *
 * Not by opal_show_help, which leaves collecting to mpirun: that of Open MPI 4.1 over a PMIx of its
 * distribution loses about every second text. Any thread; of a helper
 * thread only the topic and the file are printed.
 */
ONIC_EXPORT void onic_help(const char *file, const char *topic, ...);

/** Prints a text. Equal texts of all that one mpirun has started on a node are printed once. Reads
 *  no structure of Open MPI's, so it may be called in another series of it. Any thread. */
ONIC_EXPORT void onic_say_once(const char *text);

#endif
