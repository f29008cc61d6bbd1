#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Waits if it is told to, alone or not
[ "${RUNNER_WAITS:-too}" = too ] || exec sleep 1000
