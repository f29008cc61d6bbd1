#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The packages are built twice with the same bytes, lintian has no findings, they contain what they
# should, and DKMS's source tree builds the schedulers alone; a kernel that is not supported is
# named, and a wrong layout fails the build; the spec and the PKGBUILD are filled in and valid
# (with --quick they are built once, and no release)
# timeout: 1800
# quick: host
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin

for tool in dh_dkms lintian dpkg-buildpackage; do
	command -v $tool >/dev/null || { echo "$tool is missing: scripts/setup deb"; exit 4; }
done
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
name=ssd-iosched-$version

fail()
{
	echo "fail: $*"
	exit 1
}

# The state of the source tree, which a tarball does not know.
state()
{
	[ ! -e .git ] || git status --porcelain
}

before=$(state)
packaging/build deb "$work/deb"
packaging/build sources "$work/sources"
[ "$(state)" = "$before" ] || fail "the build left files in the source tree"

# Build all again: elsewhere, with other times, modes, locale and time zone.
build_twice()
{
	mkdir -p "$work/elsewhere/deeper"
	tar -xJ -f "$work/sources/$name.tar.xz" -C "$work/elsewhere/deeper"
	mv "$work/elsewhere/deeper/$name" "$work/elsewhere/deeper/source"
	find "$work/elsewhere" -exec touch -d '2001-02-03 04:05' {} +
	chmod -R go-rwx "$work/elsewhere"
	(
		cd "$work/elsewhere/deeper/source"
		umask 077
		LC_ALL=C TZ=Asia/Tokyo HOME=/nonexistent dpkg-buildpackage -us -uc -b
	) >"$work/log" 2>&1 || fail "$(tail -n 20 "$work/log")"
	for deb in "$work"/deb/*.deb; do
		cmp "$deb" "$work/elsewhere/deeper/${deb##*/}" || fail "${deb##*/} is not reproducible"
	done
	packaging/build sources "$work/again"
	cmp "$work/sources/$name.tar.xz" "$work/again/$name.tar.xz" ||
		fail "the tarball is not reproducible"
	echo "built twice: the same bytes"
}

[ "${TEST_QUICK:-}" ] || build_twice

# lintian as root prints a line that is no finding.
lintian --pedantic --display-info --fail-on error,warning,info,pedantic \
	"$work"/deb/*.changes 2>"$work/err" || fail "lintian has findings $(<"$work/err")"

# contains PACKAGE FILE...
contains()
{
	local file files package=$1

	shift
	files=$(dpkg-deb --fsys-tarfile "$work/deb/$package"_*.deb | tar -t)
	for file in "$@"; do
		grep -qx "[.]/$file" <<<"$files" || fail "$package has no $file"
	done
	! grep -E '__pycache__|/tests/|ssdemu|ioload' <<<"$files" || fail "$package has these files"
}

# depends PACKAGE PACKAGE...: what its scripts and programs call; the lab's systems have all of it.
depends()
{
	local found other package=$1

	shift
	found=$(dpkg-deb -f "$work/deb/$package"_*.deb Depends | tr , '\n' | sed 's/^ *//; s/[ :].*//')
	for other in "$@"; do
		grep -qx "$other" <<<"$found" || fail "$package does not depend on $other"
	done
}

depends ssd-iosched-dkms bpftool dkms dwarves openssl python3 xz-utils zstd
depends ssd-iosched-utils fio kmod liburing2 mount python3 \
	python3-{jinja2,jsonschema,matplotlib,numpy,scipy} udev

contains ssd-iosched-utils usr/sbin/ssd{ctl,-probe} usr/lib/ssd-iosched/ssd-probe-io \
	usr/lib/ssd-iosched/ssd_{ctl,probe}/command.py usr/lib/ssd-iosched/ssd_ctl/advice/__init__.py \
	usr/lib/ssd-iosched/ssd_ctl/evidence.json usr/share/doc/ssd-iosched-utils/recommend.md.gz \
	usr/share/man/man8/ssd{ctl,-probe}.8.gz usr/share/bash-completion/completions/ssd{ctl,-probe} \
	usr/bin/trace-to-fio usr/lib/ssd-iosched/trace_to_fio/formats/blkparse.py \
	usr/share/man/man1/trace-to-fio.1.gz usr/share/bash-completion/completions/trace-to-fio \
	usr/share/zsh/vendor-completions/_{ssdctl,trace-to-fio} usr/lib/udev/rules.d/60-ssd-iosched-hwdb.rules \
	usr/lib/udev/hwdb.d/60-ssd-iosched.hwdb
contains ssd-iosched-dkms "usr/src/$name/dkms.conf" "usr/src/$name/piq-iosched.c"

mkdir "$work/root"
for deb in dkms utils; do
	dpkg-deb -x "$work/deb/ssd-iosched-${deb}"_*.deb "$work/root"
	[ "$(dpkg-deb -f "$work/deb/ssd-iosched-$deb"_*.deb Version)" = "$version" ] ||
		fail "not version $version"
done
# Every module of the programs is there.
for program in ssdctl ssd-probe trace-to-fio; do
	said=$(PYTHONDONTWRITEBYTECODE=1 "$work/root/usr/lib/ssd-iosched/$program" --version)
	[ "$said" = "$program $version" ] || fail "$program says $said"
done
(cd tools && find common/ssd_common ssdctl/{ssd_ctl,jobs} ssd-probe/ssd_probe \
	trace-to-fio/trace_to_fio -name __pycache__ -prune -o -type f -print |
	sed 's|^[^/]*/||' | sort) >"$work/want"
(cd "$work/root/usr/lib/ssd-iosched" &&
	find ssd_common ssd_ctl jobs ssd_probe trace_to_fio -type f | sort) >"$work/have"
diff "$work/want" "$work/have" || fail "not all of the programs' files are in the package"

# Run dkms.conf as DKMS does for the build of kernel $1 with headers $2; print what DKMS is told.
configured()
{
	# shellcheck disable=SC2016  # variables of that shell
	action=build kernelver=$1 kernel_source_dir=$2 dkms_tree=$work/none bash -c '
		. "$0"
		echo "$PACKAGE_NAME $PACKAGE_VERSION"
		echo "${MAKE[0]}"
		[[ ! $kernelver =~ $BUILD_EXCLUSIVE_KERNEL || ! x86_64 =~ $BUILD_EXCLUSIVE_ARCH ]] ||
			echo supported
		' "$work/root/usr/src/$name/dkms.conf" 2>"$work/err"
}

# left_out KERNEL HEADERS WHY: DKMS does not build, and says why
left_out()
{
	! configured "$1" "$2" | grep -q supported || fail "DKMS builds for $1 in spite of: $3"
	[ "$(grep -c "no modules for $1: .*$3" "$work/err")" = 1 ] || fail "$3: '$(<"$work/err")'"
}

headers=$work/headers
mkdir "$headers"
touch "$headers/vmlinux"
echo CONFIG_DEBUG_INFO_BTF=y >"$headers/.config"
[ "$(configured 6.1.0-1-amd64 "$headers" | sed -n 1p)" = "ssd-iosched $version" ] ||
	fail "dkms.conf has another version"
for release in 6.1.0-1-amd64 6.10.3 6.12.1+deb13-amd64 7.2-amd64 7.3.4 7.20.1 16.1.2; do
	configured "$release" "$headers" | grep -q supported || fail "DKMS leaves $release out"
	case $release in
	6.1.0* | 6.12.* | 7.[23][-.]*) [ ! -s "$work/err" ] || fail "$release: $(<"$work/err")" ;;
	*) grep -qx "ssd-iosched: not tested with $release, only with 6.1, .*; building all the same" \
		"$work/err" || fail "$release: '$(<"$work/err")'" ;;
	esac
done
for release in 5.10.0-1 6.0.1 4.19.3; do
	left_out "$release" "$headers" 'they need Linux 6.1 or newer'
done
# The installation of the package has its own order.
export SSD_IOSCHED_KERNELS="6.12.1-amd64 6.1.0-2-amd64"
configured 6.1.0-2-amd64 "$headers" | grep -q supported || fail "a named kernel is left out"
! configured 6.1.0-1-amd64 "$headers" | grep -q supported || fail "an unnamed kernel is tried"
unset SSD_IOSCHED_KERNELS
rm "$headers/vmlinux"
left_out 6.1.0-1-amd64 "$headers" 'not installed'
echo '# CONFIG_DEBUG_INFO_BTF is not set' >"$headers/.config"
left_out 6.1.0-1-amd64 "$headers" 'no BTF: CONFIG_DEBUG_INFO_BTF is not set'
printf '%s\n' CONFIG_DEBUG_INFO_BTF=y CONFIG_CC_IS_CLANG=y CONFIG_CLANG_VERSION=970000 >"$headers/.config"
left_out 6.1.0-1-amd64 "$headers" 'built with clang 97: clang-97 is missing: apt-get install clang-97 .*'

# status KERNEL: what dkms.conf adds to dkms status before or after the line of a kernel.
status()
{
	action=status kernelver=$1 dkms_tree=$work/dkms install_tree=$work/modules \
		bash -c '. "$0"' "$work/root/usr/src/$name/dkms.conf" 2>&1
}

mkdir -p "$work/dkms/ssd-iosched/$version/"{6.1.0-1,6.12.1}/x86_64 \
	"$work/modules/"{5.10.0-1,6.1.0-1,6.12.1,7.4.1}/build "$work/modules/"{5.10.0-2,6.12.2,6.12.3}/kernel
touch "$work/modules/"{6.1.0-1,6.12.1,7.4.1}/build/vmlinux "$work/modules/"{5.10.0-2,6.12.2}/vmlinuz
[ "$(status 6.1.0-1 | grep .)" = \
	"ssd-iosched: no modules for 5.10.0-1: they need Linux 6.1 or newer
ssd-iosched: no modules for 6.12.2: its headers are not installed
ssd-iosched: no modules for 7.4.1: they are not built: dkms install ssd-iosched/$version -k 7.4.1" ] ||
	fail "dkms status: $(status 6.1.0-1)"
[ -z "$(status 6.12.1)" ] || fail "dkms status says it twice: $(status 6.12.1)"

# Debian's DKMS, in folders of its own. Neither a kernel that is left out nor a build that fails is
# an error when a kernel is installed: its installation would fail. That is said, once.
(
	# shellcheck source=scripts/common.sh
	. scripts/common.sh
	cd "$work"
	apt_download dkms || { apt_update && apt_download dkms; }
) >"$work/log" 2>&1 || fail "no dkms: $(<"$work/log")"
dpkg-deb -x "$work"/dkms_*.deb "$work/debian"
# The folder of a kernel's headers does not follow --installtree.
sed -i "s|/lib/modules|$work/modules|" "$work/debian/usr/sbin/dkms"

dkms()
{
	"$work/debian/usr/sbin/dkms" "$@" --dkmstree "$work/tree" --sourcetree "$work/root/usr/src" \
		--installtree "$work/modules" >"$work/log" 2>&1
}

mkdir "$work/tree"
dkms add -m ssd-iosched -v "$version" || fail "dkms add: $(<"$work/log")"
dkms autoinstall -k 5.10.0-1 || fail "a kernel that is left out: $(<"$work/log")"
grep -q "no modules for 5.10.0-1: they need Linux 6.1" "$work/log" || fail "dkms: $(<"$work/log")"
for kernel in 6.12.1 7.4.1; do
	dkms autoinstall -k $kernel || fail "a build fails, and with it DKMS: $(<"$work/log")"
	[ "$(grep -c "no modules for $kernel: the build has failed: $work/tree/.*make.log" \
		"$work/log")" = 1 ] || fail "the build has failed: $(<"$work/log")"
	! dkms install -m ssd-iosched -v "$version" -k $kernel || fail "DKMS has built: $(<"$work/log")"
done

# What another DKMS is called for if all goes well, or if it leaves the kernel out: once, although
# DKMS reads dkms.conf for each kernel that has modules.
cat >"$work/stub" <<-'EOF'
	#!/bin/bash
	if [ "$1" = install ]; then
		echo "$*" >>"$CALLS"
		exit "$STATUS"
	fi
	action=$1
	autoinstall()
	{
		(. "$CONF" && echo "AUTOINSTALL=$AUTOINSTALL")
		(. "$CONF" && echo "AUTOINSTALL=$AUTOINSTALL")
	}
	autoinstall
EOF
chmod +x "$work/stub"
for status in 0 77 10; do
	rm -f "$work/calls"
	CALLS=$work/calls STATUS=$status CONF=$work/root/usr/src/$name/dkms.conf source_tree=$work \
		dkms_tree=$work/none install_tree=$work/modules \
		"$work/stub" autoinstall -k 6.12.1 >"$work/out" 2>"$work/err"
	[ "$(<"$work/out")" = $'AUTOINSTALL=\nAUTOINSTALL=' ] || fail "AUTOINSTALL: $(<"$work/out")"
	[ "$(<"$work/calls")" = "install -m ssd-iosched -v $version -k 6.12.1 --dkmstree $work/none\
 --sourcetree $work --installtree $work/modules" ] || fail "DKMS calls: $(<"$work/calls")"
	[ "$(grep -c 'build has failed' "$work/err")" = $((status == 10)) ] ||
		fail "status $status: $(<"$work/err")"
done

# The build that DKMS makes, in its source tree.
release=$(scripts/fetch-kernel --cached 6.12 || scripts/fetch-kernel 6.12)
make=$(configured "$release" "$(scripts/kbuild/find-headers "$release")" | sed -n 2p)
(cd "$work/root/usr/src/$name" && $make) >"$work/log" 2>&1 || fail "$(tail -n 20 "$work/log")"
built=$(cd "$work/root/usr/src/$name/build/$release" && find . -name '*.ko' | sort | tr '\n' ' ')
[ "$built" = "$(printf './%s ' *-iosched.c | sed 's/\.c /.ko /g')" ] ||
	fail "DKMS builds $built"
[ "$(grep -c 'types as in' "$work/log")" = "$(wc -w <<<"$built")" ] || fail "DKMS does not compare layouts"
echo "DKMS's source tree builds: $built"
sed -i '/^IOSCHED_KERNEL_SIZE(struct request,/s/, /, 1 + /' \
	"$work/root/usr/src/$name/build/$release/iosched-kernel.h"
! (cd "$work/root/usr/src/$name" && $make) >"$work/log" 2>&1 || fail "a wrong layout is built"
grep -q 'struct request is not laid out as in the kernel image' "$work/log" ||
	fail "a wrong layout: $(tail -n 20 "$work/log")"

# What other distributions build from.
! grep -n '@[A-Z0-9]*@' "$work"/sources/{ssd-iosched.spec,PKGBUILD} || fail "not filled in"
sum=$(sha256sum "$work/sources/$name.tar.xz")
grep -q "sha256sums=('${sum%% *}')" "$work/sources/PKGBUILD" || fail "PKGBUILD has another checksum"
bash -n "$work/sources/PKGBUILD" || fail "PKGBUILD"
grep -q "^Version: *$version$" "$work/sources/ssd-iosched.spec" || fail "the spec's version"

# A release, of what is committed.
[ -e .git ] && [ ! "${TEST_QUICK:-}" ] || exit 0
git clone -q . "$work/clone"
"$work/clone/packaging/build" release "$work/release" >"$work/log" 2>&1 || fail "$(<"$work/log")"
(cd "$work/release" && sha256sum --check --strict --quiet SHA256SUMS) || fail "checksums"
for file in PKGBUILD ssd-iosched.spec "$name.tar.xz" "$name-results.tar.xz" "$name-notes.md" \
	"ssd-iosched-dkms_${version}_all.deb"; do
	grep -q " $file$" "$work/release/SHA256SUMS" || fail "a release has no $file"
done
[ -s "$work/release/$name-notes.md" ] || fail "the notes of a release are empty"
! grep '^#' "$work/release/$name-notes.md" || fail "the notes have more than a section"
mkdir "$work/mine"
touch "$work/mine/file"
! "$work/clone/packaging/build" release "$work/mine" >"$work/log" 2>&1 || fail "into a folder with files"
[ -e "$work/mine/file" ] || fail "the release has removed mine/file"
echo "not committed" >"$work/clone/new"
! "$work/clone/packaging/build" release "$work/release" >"$work/log" 2>&1 ||
	fail "a release of what is not committed"
[ "$(<"$work/log")" = "error: commit or remove what is not committed: git status" ] ||
	fail "$(<"$work/log")"
rm "$work/clone/new"
sed -i '0,/^## .*/s//## 99.9/' "$work/clone/CHANGELOG.md"
git -C "$work/clone" -c user.name=test -c user.email=test@example.org commit -qam "next version"
! "$work/clone/packaging/build" release "$work/release" >"$work/log" 2>&1 ||
	fail "a release of another version than CHANGELOG.md has"
[ "$(<"$work/log")" = \
	"error: CHANGELOG.md begins with another version than debian/changelog: $version" ] ||
	fail "$(<"$work/log")"
! make -s -C "$work/clone" release >"$work/log" 2>&1 || fail "a release that lint has not seen"
grep -qx "error: make lint has not passed on this commit" "$work/log" || fail "$(<"$work/log")"
