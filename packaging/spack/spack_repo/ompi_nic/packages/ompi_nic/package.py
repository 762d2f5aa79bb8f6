# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
"""Recipe of Spack 1.0 or later; packaging/README.md says how it is used."""
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class OmpiNic(AutotoolsPackage):
    """Components for an installed Open MPI: one-sided communication, messages and barriers, fast for strided
    data. Programs stay as they are."""

    # What `make dist` makes, in the working directory.
    manual_download = True
    url = f"file://{os.getcwd()}/ompi-nic-0.3.0.tar.gz"

    license("BSD-3-Clause")

    version("0.3.0")

    variant("verbs", default=True, description="Barriers and one-sided communication by InfiniBand and RoCE")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    # A component serves the series that it is built with. Open MPI must have its developer headers.
    depends_on("openmpi@4.1,5.0")
    depends_on("pmix", when="^openmpi@5.0")
    depends_on("ucx@1.12:")
    depends_on("hwloc@2:")
    depends_on("rdma-core@32:", when="+verbs")
    depends_on("check", type="test")
    depends_on("python@3.9:", type=("run", "test"))

    def configure_args(self):
        spec = self.spec
        args = [f"--with-{name}={spec[package].prefix}"
                for name, package in (("ompi", "openmpi"), ("ucx", "ucx"), ("hwloc", "hwloc"))]
        if spec.satisfies("^openmpi@5.0"):
            args.append(f"--with-pmix={spec['pmix'].prefix}")
        args.append(f"--with-verbs={spec['rdma-core'].prefix}" if spec.satisfies("+verbs") else "--without-verbs")
        args.append(f"--with-check={spec['check'].prefix}" if self.run_tests else "--without-check")
        # Spack has no bpftool.
        args.append("--without-bpf")
        return args

    def setup_run_environment(self, env):
        """Has mpirun use the components without options, as packaging/modulefile.in does."""
        system = self.spec["openmpi"].prefix.lib.openmpi
        env.set("OMPI_MCA_mca_base_component_path", f"{self.prefix.lib.openmpi}:{system}")
        env.set("PMIX_MCA_mca_base_component_show_load_errors", "none")
        env.set("OMPI_MCA_osc", "nicstride")
        env.set("OMPI_MCA_pml", "superpipe")
        env.set("OMPI_MCA_coll_nicbarrier_priority", "90")
