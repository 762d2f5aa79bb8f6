# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel that `roce` boots: Debian's, fetched by apt and unpacked into a cache."""

import fcntl
import fnmatch
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

# What the guest loads, with all that these depend on: first what mounts the root file system.
MODULES_EARLY = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"]
MODULES_LATE = ["crc32_generic", "rdma_rxe", "rdma_ucm", "ib_umad", "veth", "bridge", "sch_netem",
                "sch_ingress", "cls_bpf"]


class Unavailable(Exception):
    """There can be no such machine here; the text says why."""


def tool(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Unavailable("%s is missing (Debian: apt-get install %s)" % (name, package))
    return path


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("ONIC_CACHE") or os.path.join(base, "ompi-nic", "roce")


def output_of(command, **options):
    """Standard output of a command; its standard error where it fails."""
    done = subprocess.run(command, check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["exit status %d" % done.returncode]
        raise Unavailable("%s: %s" % (" ".join(command[:3]), lines[-1]))
    return done.stdout


# The kernel that Debian takes by itself; it has all drivers, other flavours have not.
DEFAULT = "linux-image-amd64"


def find_package(apt_options, name):
    """The kernel that a package depends on which has none; else that package."""
    text = output_of([tool("apt-cache", "apt"), *apt_options, "depends", name])
    names = re.findall(r"Depends: (linux-image-[0-9]\S*-amd64)", text)
    if not names and name == DEFAULT:
        raise Unavailable("apt does not know what %s depends on" % name)
    return names[0] if names else name


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def write(data, *path):
    with open(os.path.join(*path), "wb") as f:
        f.write(data)


def module_name(path):
    return re.sub(r"\.ko(\.xz)?$", "", os.path.basename(path)).replace("-", "_")


def module_contents(path):
    data = read(path)
    return lzma.decompress(data) if path.endswith(".xz") else data


def dependencies(path):
    found = re.search(rb"\0depends=([^\0]*)\0", module_contents(path))
    return [n.replace("-", "_") for n in found.group(1).decode().split(",") if n] if found else []


def in_order(wanted, modules, builtin):
    """The wanted modules and all that they depend on, these first."""
    order = []

    def visit(name):
        if name in builtin:
            return
        if name not in modules:
            raise Unavailable("the kernel package has no module %s" % name)
        for other in dependencies(modules[name]):
            visit(other)
        if name not in order:
            order.append(name)
    for name in wanted:
        visit(name)
    return order


def keep_modules(tree, directory):
    """Takes what the guest loads out of the unpacked package, numbered in the order of loading."""
    modules, builtin = {}, set()
    for root, _, files in os.walk(tree):
        modules.update({module_name(f): os.path.join(root, f) for f in files
                        if f.endswith((".ko", ".ko.xz"))})
        if "modules.builtin" in files:
            builtin.update(map(module_name, read(root, "modules.builtin").decode().split()))
    early = in_order(MODULES_EARLY, modules, builtin)
    late = [m for m in in_order(MODULES_LATE, modules, builtin) if m not in early]
    for stage, names in (("early", early), ("late", late)):
        os.makedirs(os.path.join(directory, stage))
        for i, name in enumerate(names):
            write(module_contents(modules[name]), directory, stage, "%02d-%s.ko" % (i, name))


def keep_kernel(tree, directory):
    """The kernel as it is before compression: unpacking it in the guest would take seconds."""
    boot = os.path.join(tree, "boot")
    images = [f for f in os.listdir(boot) if f.startswith("vmlinuz-")]
    if not images:
        raise Unavailable("the kernel package has no boot/vmlinuz-*")
    image = read(boot, images[0])
    start = image.find(b"\xfd7zXZ\0")
    if start >= 0:
        # What follows the stream belongs to the loader.
        image = lzma.LZMADecompressor().decompress(image[start:])
    write(image, directory, "kernel")


def download(wanted, work):
    """Downloads a package or what it depends on, or the default one; apt verifies it. Returns its name and its file."""
    common = ["-q", "-o", "Acquire::Retries=3", "-o", "APT::Get::AllowUnauthenticated=false"]
    state = [word % work for word in ("Dir::State=%s", "Dir::State::Lists=%s/lists",
                                      "Dir::Cache=%s/cache", "Dir::Log=%s")]
    own = [word for option in state for word in ("-o", option)]
    apt_get = tool("apt-get", "apt")

    def attempt(options):
        package = find_package(options, wanted or DEFAULT)
        print("roce: fetching " + package, file=sys.stderr, flush=True)
        output_of([apt_get, *common, *options, "download", package], cwd=work)
        return package, os.path.join(work, fnmatch.filter(os.listdir(work), "*.deb")[0])
    try:
        return attempt([])
    except Unavailable:
        # The system's lists are missing or older than the archive, and may not be ours to update.
        os.makedirs(os.path.join(work, "lists", "partial"))
        os.makedirs(os.path.join(work, "cache", "archives", "partial"))
        output_of([apt_get, *common, *own, "update", "--error-on=any"])
        return attempt(own)


def fetch_kernel(wanted, cache):
    """Keeps what the guest needs of a package; the directory is there whole or not at all."""
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as work:
        package, file = download(wanted, work)
        if not os.path.isdir(os.path.join(cache, package)):
            tree, kept = os.path.join(work, "tree"), os.path.join(work, "kept")
            output_of([tool("dpkg-deb", "dpkg"), "-x", file, tree])
            os.makedirs(kept)
            keep_modules(tree, kept)
            keep_kernel(tree, kept)
            os.rename(kept, os.path.join(cache, package))
    return package


def find_kernel(wanted):
    """The directory with kernel and modules, from the cache or fetched. Without a wish it is the
    one that was fetched without a wish before."""
    cache = cache_directory()
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(cache, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        directory = os.path.join(cache, wanted or "default")
        if not os.path.isdir(directory):
            package = fetch_kernel(wanted, cache)
            if not os.path.isdir(directory):
                os.symlink(package, directory)
        return os.path.realpath(directory)
