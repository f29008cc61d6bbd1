# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the scripts that fetch things: messages, where the cache is, and
# how apt is called so that it neither asks nor touches what is installed.

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/ssd-iosched
export DEBIAN_FRONTEND=noninteractive

say()
{
	echo "$*" >&2
}

die()
{
	say "error: $*"
	exit 1
}

require_debian()
{
	local id=unknown

	# shellcheck source=/dev/null
	[ -r /etc/os-release ] && id=$(. /etc/os-release && echo "$ID")
	[ "$id" = debian ] ||
		die "this needs Debian (found: $id): packages and kernels come from its archive"
}

# Lists of other vendors may be out of reach; what matters is whether the
# packages that are asked for are found afterwards.
apt_update()
{
	say "reading the package lists"
	apt-get -q -o Acquire::http::Timeout=30 "$@" update >&2 ||
		say "some package lists could not be read; going on with the others"
}

# Download the .deb of each PACKAGE[=VERSION] into the current directory.
apt_download()
{
	# The sandbox user may not write into a private cache.
	apt-get -q -o APT::Sandbox::User=root "${APT_OPTIONS[@]}" download "$@" >&2
}

# Address of the machine's own Debian mirror: $1 is "" or "-security".
debian_mirror()
{
	local codename

	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016  # apt's own placeholders
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' |
		awk -v want="$codename$1" \
			'$2 == want && $3 == "main" && !n++ { print $1 }'
}

# Let APT_OPTIONS point apt at other Debian SUITEs than the machine's: a list
# and an index of our own, so that the machine's configuration stays as it is.
APT_OPTIONS=()
use_suites()
{
	local dir=$CACHE/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
	local suite mirror kind

	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	for suite in "$@"; do
		kind=
		[[ $suite == *-security ]] && kind=-security
		mirror=$(debian_mirror "$kind")
		[ -n "$mirror" ] || continue
		echo "deb [signed-by=$key] $mirror $suite main"
	done >"$dir/sources.list"
	[ -s "$dir/sources.list" ] ||
		die "no Debian mirror among this machine's apt sources"
	APT_OPTIONS=(-o "Dir::Etc::SourceList=$dir/sources.list"
		-o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$dir/lists"
		-o "Dir::Cache::Archives=$dir/archives"
		-o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache="
		-o APT::Sandbox::User=root -o Acquire::Languages=none
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
	apt_update "${APT_OPTIONS[@]}"
}
