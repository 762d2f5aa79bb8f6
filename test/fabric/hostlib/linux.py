# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""The system calls that Python's library lacks, and a tool runner."""

import ctypes
import errno
import fcntl
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import subprocess

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
SECCOMP_MODE_FILTER = 2
CAP_IPC_LOCK = 14

SIOCGIFFLAGS = 0x8913
IFF_RUNNING = 0x40

# (the kernel's name of the architecture, process_vm_readv, process_vm_writev)
SINGLE_COPY_CALLS = {
    "x86_64": (0xC000003E, 310, 311),
    "aarch64": (0xC00000B7, 270, 271),
    "ppc64le": (0xC0000015, 351, 352),
    "riscv64": (0xC00000F3, 270, 271),
}

_libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """What went wrong, in words for the user."""


def _checked(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))


def _text(value):
    return value.encode() if isinstance(value, str) else value


def unshare(flags):
    _checked(_libc.unshare(flags), "unshare")


def mount(source, target, kind=None, flags=0, data=None):
    _checked(_libc.mount(_text(source), _text(target), _text(kind), ctypes.c_ulong(flags),
                         _text(data)), "mount %s on %s" % (kind or source, target))


def bind(source, target):
    mount(source, target, flags=MS_BIND | MS_REC)


def prctl(option, value):
    _checked(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl %d" % option)


def die_with_parent(parent):
    """Has the kernel kill this process when its parent ends. `parent` is who it should be."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def limit_locked_memory(kib):
    """A limit that holds for root, too: the capability that lifts it is given up for good."""
    prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (kib * 1024, kib * 1024))


def can_deny_single_copy():
    return platform.machine() in SINGLE_COPY_CALLS


def deny_single_copy():
    """process_vm_readv and process_vm_writev fail with EPERM from now on, and in all children."""
    arch, read, write = SINGLE_COPY_CALLS[platform.machine()]
    load, equal, ret = 0x20, 0x15, 0x06
    allow, deny = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = b"".join(struct.pack("=HBBI", *step) for step in (
        (load, 0, 0, 4),
        (equal, 0, 4, arch),
        (load, 0, 0, 0),
        (equal, 1, 0, read),
        (equal, 0, 1, write),
        (ret, 0, 0, deny),
        (ret, 0, 0, allow)))
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    filter_program = Program(len(program) // 8, ctypes.addressof(buffer))
    _checked(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_program), 0, 0),
             "seccomp")


def is_running(interface):
    """Does the interface of this network namespace have its carrier?"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", interface.encode(), 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
    return bool(flags & IFF_RUNNING)


def find_tool(name):
    """Root's tools are not in everybody's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def tool(*words, text=None):
    """Runs one of the network tools; its complaint is the error."""
    done = subprocess.run([find_tool(words[0]) or words[0], *map(str, words[1:])], input=text,
                          text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failure("%s: %s" % (" ".join(map(str, words)), done.stderr.strip()))
    return done.stdout
