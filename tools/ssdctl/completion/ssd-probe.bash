# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC1091
# Completion of ssd-probe for bash, which is in the file of ssdctl's.
. "${BASH_SOURCE[0]%/*}/ssdctl"
