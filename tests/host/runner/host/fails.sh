#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Fails on the host, with more output than is shown
seq 100
exit 1
