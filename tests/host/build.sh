#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All modules build for the stock kernels, of arm64, too, without a warning by W=1 and sparse, leave
# the source tree clean, and have the kernels' own layouts; a build for an untested series says
# so; a build that is not possible prints one line with the reason
# timeout: 900
set -euo pipefail

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

fail()
{
	echo "fail: $*"
	exit 1
}

# make with these arguments must fail, with one error line that matches: refused PATTERN ARG...
refused()
{
	local pattern=$1

	shift
	! make -s "$@" >"$work/out" 2>&1 || fail "make $* succeeded"
	[ "$(grep -c '^error: ' "$work/out")" = 1 ] ||
		fail "make $*: not one line of error: $(<"$work/out")"
	grep -q "^error: .*$pattern" "$work/out" ||
		fail "make $* prints: $(<"$work/out")"
}

# make in build/RELEASE, which guests use, too.
built()
{
	flock build/.lock make -s -j2 "KVER=$release" W=1e "$@"
}

before=$(git status --porcelain)
for series in newest 6.1 6.12 6.1-arm64 6.12-arm64-16k newest-arm64; do
	release=$(scripts/fetch-kernel --cached $series || scripts/fetch-kernel $series)
	newest=${newest:-$release}
	built >"$work/log" 2>&1 || fail "$release: $(tail -n 20 "$work/log")"
	# Lint runs sparse for 6.12. The newest has its own release's compiler, without sparse.
	[ $series != 6.1 ] || built C=2 >"$work/log" 2>&1 || fail "$(tail -n 20 "$work/log")"
	! grep -E 'warning|error' "$work/log" || fail "warnings for $release"
	for source in *-iosched.c; do
		[ -e "build/$release/${source%.c}.ko" ] || fail "no ${source%.c}.ko"
	done
	[ -e "build/$release/tests/ssdemu/ssdemu.ko" ] || fail "no ssdemu.ko"
	built check-abi | grep 'types as in'
	[ $series != 6.12 ] || built check-headers | grep 'parse on their own'
	echo "$release: built, layouts compared"
done
[ "$(git status --porcelain)" = "$before" ] || fail "the build left files in the source tree"

release=$(scripts/fetch-kernel --cached 6.12)
build=$work/$release
make -s "KVER=$release" "BUILD=$build" CONFIG_MQ_IOSCHED_{PAI,BP,PIQ}= CONFIG_BLK_DEV_SSDEMU= \
	CONFIG_BLK_IOLOAD= >"$work/log" 2>&1 || fail "$(tail -n 20 "$work/log")"

# check-abi must find a wrong layout in a header without its static assertions.
header=$build/iosched-kernel.h
sed -i -e '/^IOSCHED_KERNEL_/d' \
	-e 's/^\tvoid \*elevator_data;/\tlong shifted;\n&/' "$header"
grep -q shifted "$header" || fail "found no elevator_data to shift"
! make -s "KVER=$release" "BUILD=$build" CONFIG_MQ_IOSCHED_{PAI,BP,PIQ}= \
	CONFIG_BLK_DEV_SSDEMU= CONFIG_BLK_IOLOAD= check-abi >"$work/out" 2>&1 ||
	fail "check-abi accepts a wrong layout"
grep -q 'elevator_queue: .*elevator_data' "$work/out" ||
	fail "check-abi prints: $(<"$work/out")"

# A kernel without BTF, and the directory block of its source: the versions of its symbols tell
# whether that is its own. Without them nothing does.
named=$work/named
mkdir "$named"
kunit=$(scripts/kunit-kernel "$work/kunit")
headers=$(scripts/kbuild/find-headers "$release")
cp -rs "$headers" "$named/headers"
cp -r "$kunit/linux/block" "$named/block"
config=$named/headers/include/config/auto.conf
sed '/^CONFIG_DEBUG_INFO_BTF/d' "$headers/include/config/auto.conf" >"$named/conf"
cp --remove-destination "$named/conf" "$config"
options=("KVER=$release" "HEADERS=$named/headers" "BUILD=$named/build" "BLOCK=$named/block"
	"CONFIG_MQ_IOSCHED_"{PAI,BP,PIQ}"=" "CONFIG_BLK_DEV_SSDEMU=" "CONFIG_BLK_IOLOAD=")
make -s "${options[@]}" >"$work/out" 2>&1 || fail "$(tail -n 20 "$work/out")"
grep -q "^BLOCK is of the kernel's source: .*elv_register" "$work/out" || fail "$(<"$work/out")"
[ -e "$named/build/pass-iosched.ko" ] || fail "no module for a kernel without BTF"
! grep -q '^IOSCHED_KERNEL_' "$named/build/iosched-kernel.h" || fail "asserts layouts without BTF"
refused 'has no BTF to compare with .*; make BLOCK=' "${options[@]}" check-abi
sed -i 's/^\tvoid \*elevator_data;/\tlong more;\n&/' "$named/block/elevator.h"
refused "BLOCK is not of this kernel's source: .*elv_register" "${options[@]}"
# That of another series.
sed -i "s/DECLARE_HASHTABLE(hash,/DECLARE_HASHTABLE(table,/" "$named/block/elevator.h"
refused "BLOCK is not of this kernel's source: elevator.c does not compile .*/block/log" \
	"${options[@]}"
for file in elevator.c blk-mq-sched.h elevator.h; do
	rm "$named/block/$file"
	refused "has no $file: BLOCK is" "${options[@]}"
done
cp -r "$kunit/linux/block/." "$named/block"
sed '/^CONFIG_MODVERSIONS/d' "$named/conf" >"$config"
refused 'neither BTF nor versions of symbols' "${options[@]}"

refused 'no headers for 6.12.0-none' KVER=6.12.0-none
refused 'not a configured kernel tree' "KDIR=$work"
refused 'bpftool is missing' "KVER=$release" "BUILD=$work/nobpf" BPFTOOL=/none
mkdir -p "$work/bare/include"
cp -r "$headers/Makefile" "$work/bare/"
refused 'apt-get install linux-image-6.12.0-none .*vmlinuz' KVER=6.12.0-none \
	"HEADERS=$work/bare" "BUILD=$work/nobtf"
# Without BTF; the program stands for a kernel.
cp /bin/true "$work/bare/vmlinux"
refused 'vmlinux has no BTF: CONFIG_DEBUG_INFO_BTF is not set' KVER=6.12.0-none \
	"HEADERS=$work/bare" "BUILD=$work/nobtf"
mkdir "$work/bare/include/config"
config=$work/bare/include/config/auto.conf
echo CONFIG_SMP=y >"$config"
refused '6.12.0-none has no BTF: CONFIG_DEBUG_INFO_BTF is not set' KVER=6.12.0-none \
	"HEADERS=$work/bare" "BUILD=$work/nobtf"
rm "$config" "$work/bare/vmlinux"
# A bpftool that does not work, as Ubuntu's for a kernel without linux-tools.
printf '#!/bin/sh\necho "WARNING: bpftool not found for kernel 1.2"; exit 2\n' >"$work/bpftool"
chmod +x "$work/bpftool"
refused 'bpftool says: WARNING: bpftool not found for kernel 1.2' "KVER=$release" \
	"BUILD=$work/nobpf" "BPFTOOL=$work/bpftool"
# A kernel that clang has built.
cp -r "$work/bare" "$work/clang"
mkdir -p "$work/clang/include/config"
printf 'CONFIG_%s\n' CC_IS_CLANG=y CLANG_VERSION=970000 >"$work/clang/include/config/auto.conf"
refused 'built with clang 97: clang-97 is missing: apt-get install clang-97 lld-97 llvm-97' \
	KVER=6.12.0-none "HEADERS=$work/clang" "BUILD=$work/noclang"
# A series that the project does not know yet: the newest kernel by another name.
newer_headers=$(scripts/kbuild/find-headers "$newest")
for said in 1 0; do
	scripts/kbuild/gen-kernel-header --headers "$newer_headers" --release 97.4.1-amd64 -o "$work/newer.h" \
		2>"$work/out"
	[ "$(grep -c '^note: .*not tested with 97.4.1-amd64, only with 6.1, .* 7.3' "$work/out")" = $said ] ||
		fail "an untested series, $said: $(<"$work/out")"
done
scripts/kbuild/gen-kernel-header --headers "$newer_headers" --release 7.3.97-amd64 -o "$work/newer.h" \
	2>"$work/out"
[ ! -s "$work/out" ] || fail "a tested series: $(<"$work/out")"
# A truncated image.
mkdir -p "$work/root/usr/src" "$work/root/boot"
cp -r "$work/bare" "$work/root/usr/src/linux-headers-6.12.0-none"
head -c 100000 "$headers/../../../boot/vmlinuz-$release" >"$work/root/boot/vmlinuz-6.12.0-none"
refused 'vmlinuz-6.12.0-none cannot be unpacked' KVER=6.12.0-none \
	"HEADERS=$work/root/usr/src/linux-headers-6.12.0-none" "BUILD=$work/nobtf"
