#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The spec and the PKGBUILD of a release build packages with all files in them, as far as Debian's
# rpm and makepkg can tell; rpmlint has no findings. Two releases of a commit are the same. Packages
# for arm64 have the same files as those for this machine
# check: none
# timeout: 1800
set -euo pipefail

for tool in rpmbuild rpmlint makepkg pacman bsdtar; do
	command -v $tool >/dev/null || { echo "$tool is missing: scripts/setup packages"; exit 4; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)

fail()
{
	echo "fail: $*"
	exit 1
}

# checked PACKAGE FILES...: the two packages have the same files as Debian's.
checked()
{
	local package=$1 file

	shift
	for file in bin/ssdctl bin/ssd-probe bin/trace-to-fio usr/share/man/man1/trace-to-fio.1 \
		usr/share/bash-completion/completions/trace-to-fio \
		usr/share/zsh/site-functions/_trace-to-fio ssd-iosched/trace_to_fio/command.py ssd-iosched/ssd-probe-io \
		usr/lib/udev/rules.d/60-ssd-iosched-hwdb.rules usr/share/man/man8/ssd-probe.8 \
		"usr/src/ssd-iosched-$version/pass-iosched.c" usr/share/man/man8/ssdctl.8 \
		usr/share/bash-completion/completions/ssdctl \
		usr/share/bash-completion/completions/ssd-probe \
		usr/share/zsh/site-functions/_ssdctl usr/lib/udev/hwdb.d/60-ssd-iosched.hwdb \
		"usr/src/ssd-iosched-$version/dkms.conf" ssd-iosched/ssd_ctl/command.py; do
		grep -q "/*$file" <<<"$*" || fail "$package: no $file"
	done
}

# rpmlint_of FILE...
rpmlint_of()
{
	rpmlint --strict -c rpmlint.toml "$@" || fail "rpmlint has findings"
}

if [ -e .git ]; then
	git clone -q . "$work/clone"
	for folder in one another; do
		(cd "$work/clone" && packaging/build release "$work/$folder" >/dev/null)
		echo "$(wc -l <"$work/$folder/SHA256SUMS") files in a release"
	done
	cmp "$work"/{one,another}/SHA256SUMS || fail "releases of a commit differ"
fi

# files PACKAGE
files()
{
	dpkg-deb --fsys-tarfile "$1" | tar -t | sort
}

if [ "$(dpkg --print-architecture)" != arm64 ]; then
	packaging/build deb "$work/deb" >/dev/null
	mv "$work/deb"/ssd-iosched-dkms_*_all.deb "$work"
	packaging/build deb "$work/deb" arm64 >/dev/null
	cmp "$work"/ssd-iosched-dkms_*_all.deb "$work/deb"/ssd-iosched-dkms_*_all.deb ||
		fail "the package for all architectures differs"
	diff <(files "$work/deb"/*_amd64.deb) <(files "$work/deb"/*_arm64.deb) ||
		fail "the package for arm64 has other files"
	dpkg-deb --fsys-tarfile "$work/deb"/*_arm64.deb |
		tar -xO ./usr/lib/ssd-iosched/ssd-probe-io >"$work/probe"
	# The machine of an ELF file: 183 is arm64.
	[ "$(od -An -t u2 -j 18 -N 2 "$work/probe" | tr -d ' ')" = 183 ] ||
		fail "ssd-probe-io is not for arm64"
	echo "packages for arm64"
fi

packaging/build sources "$work"
cp packaging/rpmlint.toml "$work"
cd "$work"
rpmlint_of ssd-iosched.spec
# Fedora's macros, which Debian's rpm lacks.
rpmbuild -bb --nodeps --define "_topdir $work/rpm" --define "_sourcedir $work" \
	--define '_udevrulesdir /usr/lib/udev/rules.d' \
	--define '_udevhwdbdir /usr/lib/udev/hwdb.d' ssd-iosched.spec >log 2>&1 ||
	fail "rpmbuild: $(tail -n 20 log)"
checked rpm "$(rpm -qlp rpm/RPMS/*/*.rpm 2>/dev/null)"
rpmlint_of rpm/RPMS/*/*.rpm

# makepkg refuses to run as root.
mkdir arch
cp PKGBUILD "ssd-iosched-$version.tar.xz" arch
as_user=()
if [ "$(id -u)" = 0 ]; then
	chown -R nobody arch
	as_user=(setpriv --reuid nobody --regid nogroup --clear-groups)
fi
(cd arch && "${as_user[@]}" env HOME="$work/arch" makepkg -d) >log 2>&1 ||
	fail "makepkg: $(tail -n 20 log)"
checked PKGBUILD "$(for package in arch/*.pkg.tar*; do bsdtar -t -f "$package"; done)"
echo "an rpm spec and a PKGBUILD build"
