# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

dist_man_MANS = \
	man/coll_nicbarrier.7 \
	man/ompi-nic-info.1 \
	man/ompi-nic.7 \
	man/osc_nicstride.7 \
	man/pml_superpipe.7

if HAVE_BPF
dist_man_MANS += man/nicbarrier-bpf.8
endif

# Those of the components and docs/parameters.md are made from the components and kept.
documents: all
	$(PYTHON3) $(srcdir)/man/generate $(srcdir) . "$(OMPI_INFO)"

# mandoc's word, but that pages of this build are not installed where it looks.
check-manuals:
	@if ! command -v mandoc >/dev/null; then \
	    $(PYTHON3) $(srcdir)/test/skips.py check-manuals \
	        "mandoc is missing (Debian: apt-get install mandoc)"; \
	else \
	    ! (cd $(srcdir) && mandoc -Tlint $(dist_man_MANS) 2>/dev/null) | grep -v 'referenced manual not found'; \
	fi

.PHONY: check-manuals documents

EXTRA_DIST += \
	docs/papers.md \
	docs/parameters.md \
	docs/troubleshooting.md \
	docs/using.md \
	man/coll_nicbarrier.7.in \
	man/generate \
	man/nicbarrier-bpf.8 \
	man/osc_nicstride.7.in \
	man/pml_superpipe.7.in
