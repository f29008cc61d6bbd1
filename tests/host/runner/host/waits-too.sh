#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Waits if it is told to, beside waits
[ -z "${RUNNER_WAITS:-}" ] || exec sleep 1000
