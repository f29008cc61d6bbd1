# SPDX-License-Identifier: GPL-2.0
"""What builds and checks the modules for a kernel. DKMS has this folder, and nothing else of
scripts/: it also runs on users' machines."""
