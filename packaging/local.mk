# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# A module of Environment Modules or Lmod, packages of Debian and of RPM, and recipes of Spack.
modulefiledir = $(datadir)/modulefiles/$(PACKAGE)
modulefile = packaging/$(PACKAGE_VERSION)
nodist_modulefile_DATA = $(modulefile)
packaging_subst = $(SED) -e 's|[@]PACKAGE_VERSION@|$(PACKAGE_VERSION)|' -e 's|[@]OMPI_SERIES@|$(OMPI_SERIES)|' \
	-e "s|[@]componentpath@|$(componentpath)|" -e 's|[@]bindir@|$(bindir)|' -e 's|[@]mandir@|$(mandir)|'
# Where Open MPI looks, each directory once.
componentpath = `echo "$(componentdir):$(OMPI_COMPONENT_DIR)" | $(SED) 's|^\(.*\):\1$$|\1|'`

$(modulefile): $(srcdir)/packaging/modulefile.in Makefile
	@$(MKDIR_P) packaging
	$(AM_V_GEN)$(packaging_subst) $(srcdir)/packaging/modulefile.in >$@.tmp && mv $@.tmp $@

# In the distribution as it is for this version, since rpmbuild takes it from there.
packaging/ompi-nic.spec: $(srcdir)/packaging/ompi-nic.spec.in Makefile
	@$(MKDIR_P) packaging
	$(AM_V_GEN)$(packaging_subst) $(srcdir)/packaging/ompi-nic.spec.in >$@.tmp && mv $@.tmp $@

# Debian's package of what would be distributed, in build/deb. What it needs is said before anything is made.
deb: deb-needs dist
	rm -rf deb && mkdir deb
	cp $(distdir).tar.gz deb/$(PACKAGE)_$(PACKAGE_VERSION).orig.tar.gz
	cd deb && tar xzf $(PACKAGE)_$(PACKAGE_VERSION).orig.tar.gz && cp -r $(distdir)/packaging/debian $(distdir)/ && \
	    cd $(distdir) && dpkg-buildpackage -us -uc $(DEBFLAGS)

deb-needs:
	@command -v dpkg-checkbuilddeps >/dev/null || { \
	    echo "make deb needs dpkg-dev (Debian: apt-get install build-essential debhelper)" >&2; exit 1; }
	@dpkg-checkbuilddeps $(filter -P%,$(DEBFLAGS)) $(srcdir)/packaging/debian/control || { \
	    echo "make deb needs these packages (Debian: apt-get install build-essential, and what else is named)" >&2; exit 1; }

rpm: dist
	rm -rf rpm && mkdir rpm
	rpmbuild -tb --define "_topdir $(CURDIR)/rpm" $(RPMFLAGS) $(distdir).tar.gz

clean-packaging:
	rm -rf deb rpm

CLEANFILES += $(modulefile) packaging/ompi-nic.spec
EXTRA_DIST += \
	packaging/README.md \
	packaging/debian/README.Debian \
	packaging/debian/changelog \
	packaging/debian/control \
	packaging/debian/copyright \
	packaging/debian/ompi-nic.docs \
	packaging/debian/ompi-nic.examples \
	packaging/debian/ompi-nic.lintian-overrides \
	packaging/debian/rules \
	packaging/debian/source/format \
	packaging/debian/source/lintian-overrides \
	packaging/debian/tests/control \
	packaging/modulefile.in \
	packaging/ompi-nic.spec.in \
	packaging/spack/spack_repo/ompi_nic/packages/ompi_nic/package.py \
	packaging/spack/spack_repo/ompi_nic/packages/openmpi/package.py \
	packaging/spack/spack_repo/ompi_nic/repo.yaml
dist-hook: packaging/ompi-nic.spec
	cp packaging/ompi-nic.spec "$(distdir)/ompi-nic.spec"

.PHONY: clean-packaging deb deb-needs rpm
