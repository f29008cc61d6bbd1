#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The spec and the PKGBUILD of a release build packages with all files in them, as far as Debian's
# rpm and makepkg can tell; rpmlint has no findings. Two releases of a commit are the same
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
	for file in bin/ssdctl bin/ssd-probe ssd-iosched/ssd-probe-io \
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
