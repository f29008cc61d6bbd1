#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The modules are built by the compiler that built the kernel, gcc or clang, of the same version
# where there is one, also if DKMS names clang without a version; a compiler that is missing is
# named, with the packages that have it
# timeout: 60
set -euo pipefail

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
headers=$work/root/usr/src/headers
mkdir -p "$headers/include/config"
config=$headers/include/config/auto.conf

fail()
{
	echo "fail: $*"
	exit 1
}

# The machine is a $1 (as uname -m says) with these PROGRAMs and, of the name NAME=VERSION, clang.
machine()
{
	local program

	rm -rf "${work:?}/bin"
	mkdir "$work/bin"
	ln -s /bin/sed "$work/bin/sed"
	printf '#!/bin/sh\necho %s\n' "$1" >"$work/bin/uname"
	shift
	for program in "$@"; do
		printf '#!/bin/sh\necho "Debian clang version %s.0.6"\n' "${program#*=}" >"$work/bin/${program%=*}"
	done
	chmod +x "$work/bin"/*
}

# find-compiler, with these variables, prints $1.
prints()
{
	local want=$1 said

	shift
	said=$(env "$@" "PATH=$work/bin" scripts/kbuild/find-compiler "$headers" 6.12.1 2>&1) ||
		fail "$* prints an error: $said"
	[ "$said" = "$want" ] || fail "$* prints: $said"
}

# find-compiler fails and says that $1 is missing.
lacks()
{
	local want="error: 6.12.1 was built with $1" said

	! said=$(PATH=$work/bin scripts/kbuild/find-compiler "$headers" 6.12.1 2>&1) || fail "finds $said"
	[ "$said" = "$want" ] || fail "prints: $said"
}

tools=(ld.lld llvm-objcopy llvm-strip)
cat >"$config" <<-'EOF2'
	CONFIG_CC_VERSION_TEXT="Debian clang version 14.0.6"
	CONFIG_CC_IS_CLANG=y
	CONFIG_CLANG_VERSION=140006
EOF2
own="LLVM=1 CC=clang LD=ld.lld STRIP=llvm-strip"
versioned="LLVM=-14 CC=clang-14 LD=ld.lld-14 STRIP=llvm-strip-14"
machine x86_64 clang=14 "${tools[@]}"
prints "$own"
machine x86_64 clang=19 clang-14=14 "${tools[@]}" "${tools[@]/%/-14}"
prints "$versioned"
prints "$versioned" CC=clang
prints "$own" LLVM=1
prints "LLVM=$work/bin/ CC=$work/bin/clang LD=$work/bin/ld.lld STRIP=$work/bin/llvm-strip" \
	"LLVM=$work/bin/"
prints "CC=gcc-13 STRIP=strip" CC=gcc-13
machine x86_64 clang=19 "${tools[@]}"
prints "$own"
machine x86_64 clang=13 "${tools[@]}"
lacks "clang 14: clang-14 is missing: apt-get install clang-14 lld-14 llvm-14"
machine x86_64 gcc
lacks "clang 14: clang-14 is missing: apt-get install clang-14 lld-14 llvm-14"
machine x86_64 clang=14 "${tools[@]:1}"
lacks "clang 14: ld.lld is missing: apt-get install clang lld llvm"

# DKMS gives make CC=clang and LD=ld.lld; what is found comes after these.
machine x86_64 clang=19 clang-14=14 "${tools[@]}" "${tools[@]/%/-14}"
# shellcheck disable=SC2016  # make's variables
echo 'modules: ; @echo "by $(LLVM) $(CC) $(LD)"' >"$headers/Makefile"
said=$(PATH=$work/bin:$PATH make -n KVER=6.12.1 "HEADERS=$headers" "BUILD=$work/build" modules \
	CC=clang LD=ld.lld)
grep -q '"by -14 clang-14 ld.lld-14"' <<<"$said" || fail "DKMS's make prints: $said"

cross="STRIP=aarch64-linux-gnu-strip CROSS_COMPILE=aarch64-linux-gnu- ARCH=arm64"
for text in '"gcc-12 (Debian 12.2.0) 12.2.0"' 'aarch64-linux-gnu-gcc-12 (Debian 12.2.0) 12.2.0'; do
	printf '%s\n' "CONFIG_CC_VERSION_TEXT=$text" CONFIG_ARM64=y >"$config"
	machine aarch64 gcc gcc-12
	prints "CC=gcc-12 STRIP=strip"
	machine aarch64 gcc
	prints "CC=gcc STRIP=strip"
	machine aarch64
	lacks "gcc-12: gcc-12 is missing: apt-get install gcc-12"
	machine x86_64 gcc gcc-12 aarch64-linux-gnu-gcc-12
	prints "CC=aarch64-linux-gnu-gcc-12 $cross"
	machine x86_64 gcc gcc-12
	lacks "gcc-12: aarch64-linux-gnu-gcc-12 is missing: apt-get install gcc-12-aarch64-linux-gnu"
	machine x86_64 mine-gcc
	prints "CC=mine-gcc STRIP=mine-strip CROSS_COMPILE=mine- ARCH=arm64" CROSS_COMPILE=mine-
done
# What Debian's headers name is what their build calls.
# shellcheck disable=SC2016  # make's variables
echo 'CC = $(if $(CACHE),ccache) $(CROSS_COMPILE)gcc-14' >"$headers/.kernelvariables"
machine aarch64 gcc gcc-12 gcc-14
prints "CC=gcc-14 STRIP=strip"
machine aarch64 gcc gcc-12
lacks "gcc-14: gcc-14 is missing: apt-get install gcc-14"
mkdir -p "$work/root/build-usr/bin"
touch "$work/root/build-usr/bin/gcc-14"
chmod +x "$work/root/build-usr/bin/gcc-14"
prints "CC=gcc-14 STRIP=strip"
