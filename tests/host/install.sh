#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make install puts everything where it belongs, the programs run from there, and make uninstall
# leaves no file, of what ssdctl has written neither
# timeout: 1800
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin PYTHONDONTWRITEBYTECODE=1

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
release=$(scripts/fetch-kernel --cached 6.12 || scripts/fetch-kernel 6.12)

fail()
{
	echo "fail: $*"
	exit 1
}

# quietly COMMAND...
quietly()
{
	"$@" >"$work/log" 2>&1 || fail "$*: $(tail -n 20 "$work/log")"
}

# Files below the folder where all was installed.
installed()
{
	(cd "$work/root" && find . ! -type d | sort)
}

# The same without the modules that are not installed, which takes half the time.
options=("KVER=$release" "BUILD=$work/build" "DESTDIR=$work/root"
	"SOURCES=Kbuild $(echo *-iosched.c) include")
openssl req -new -x509 -nodes -days 2 -subj "/CN=a test's key" -newkey rsa:2048 \
	-keyout "$work/key" -outform DER -out "$work/cert" 2>/dev/null
# Root may have a umask that hides new files from other users.
umask 077
quietly make install "${options[@]}" "SIGN_KEY=$work/key" "SIGN_CERT=$work/cert"
umask 022
hidden=$(find "$work/root" -mindepth 1 ! -type l ! -perm -a=r)
[ -z "$hidden" ] || fail "only root can read $hidden"
updates=$work/root/lib/modules/$release/updates
for source in *-iosched.c; do
	module=$(echo "$updates/${source%.c}".ko*)
	[ "$(modinfo -F signer "$module")" = "a test's key" ] || fail "$module is not signed"
done
for program in sbin/ssdctl sbin/ssd-probe bin/trace-to-fio; do
	said=$("$work/root/usr/local/$program" --version)
	program=${program#*/}
	[ "$said" = "$program $version" ] || fail "$program says $said"
done
for file in share/man/man8/ssd{ctl,-probe}.8 share/bash-completion/completions/ssd{ctl,-probe} \
	share/man/man1/trace-to-fio.1 share/bash-completion/completions/trace-to-fio \
	share/zsh/site-functions/_{ssdctl,trace-to-fio}; do
	[ -s "$work/root/usr/local/$file" ] || fail "no $file"
done
[ -s "$work/root/usr/local/lib/ssd-iosched/ssd_ctl/evidence.json" ] || fail "no evidence.json"
for file in rules.d/60-ssd-iosched-hwdb.rules hwdb.d/60-ssd-iosched.hwdb; do
	[ -s "$work/root/etc/udev/$file" ] || fail "no $file"
done
rules=60-ssd-iosched-hwdb.rules
grep -q 'RUN+="/usr/local/sbin/ssdctl ' "$work/root/etc/udev/rules.d/$rules" ||
	fail "the rules know another ssdctl"

# As ssdctl writes, and what is not ours.
mkdir -p "$work/root/var/lib/ssd-iosched/saved" "$work/root/etc/ssd-iosched"
touch "$work/root/var/lib/ssd-iosched/saved/a.json" "$work/root/etc/ssd-iosched/hwdb-enabled" \
	"$work/root/etc/udev/rules.d/"70-{ssd-iosched-mine,other}.rules \
	"$work/root/usr/local/sbin/other" "$updates/other.ko"
echo "# Written by ssdctl persist. To remove it: x" \
	>"$work/root/etc/udev/rules.d/70-ssd-iosched-by-serial-a.rules"
quietly env LIB="$work/root/etc" make uninstall "${options[@]}"
left=$(installed | tr '\n' ' ')
[ "$left" = "./etc/udev/rules.d/70-other.rules ./etc/udev/rules.d/70-ssd-iosched-mine.rules ./lib/modules/$release/updates/other.ko \
./usr/local/sbin/other " ] || fail "uninstall leaves $left"
rm "$updates/other.ko"
quietly make uninstall "${options[@]}"
[ ! -e "${updates%/*}" ] || fail "uninstall leaves an empty folder"

quietly make install-tools "${options[@]}" PREFIX=/usr
grep -q 'RUN+="/usr/sbin/ssdctl ' "$work/root/usr/lib/udev/rules.d/$rules" ||
	fail "rules for PREFIX=/usr"
quietly make uninstall "${options[@]}" PREFIX=/usr
[ "$(installed | wc -l)" = 3 ] || fail "uninstall leaves $(installed)"
echo "installed, and removed"
