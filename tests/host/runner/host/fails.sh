#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Fails on the host, with more output than tests/run prints
seq 100
exit 1
