#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Passes, with much output just before its end
# kernels: 6.12
seq 20000
exit 0
