# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the scripts that fetch packages: messages, the cache, and calls of
# apt that neither ask questions nor change installed packages.

# shellcheck disable=SC2034  # used by the scripts that search a kernel
# Debian's suites, for a series that the machine's suites do not have.
SUITES=(bookworm bookworm-security trixie trixie-security trixie-backports)
# shellcheck disable=SC2034
# Those of which only a release that is named is taken: the next releases of Debian, and older ones.
OTHER_SUITES=(bookworm-backports forky sid)
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

# Read the package lists; set all_read. Lists of other vendors may be unreachable; the
# caller fails later if a package that it needs is not found.
apt_update()
{
	say "reading the package lists"
	all_read=1
	apt-get -q -o Acquire::http::Timeout=30 "$@" update >&2 && return
	all_read=
	say "some package lists could not be read; continuing with the others"
}

# Download the .deb of each PACKAGE[=VERSION] into the current directory.
apt_download()
{
	# The sandbox user may not write into a private cache.
	apt-get -q -o APT::Sandbox::User=root "${APT_OPTIONS[@]}" download "$@" >&2
}

# Print the address of the machine's Debian mirror; $1 is "" or "-security".
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

# Set APT_OPTIONS so that apt reads these Debian SUITEs, of architecture $1, with lists and an
# index in the cache that are at most an hour old; of another architecture than this machine's,
# apt knows this one's packages, too. The machine's configuration does not change.
APT_OPTIONS=()
use_suites()
{
	local arch=$1 key=/usr/share/keyrings/debian-archive-keyring.gpg
	local own dir suite mirror kind

	dir=$CACHE/apt/$(cksum <<<"$*" | tr -d ' ')
	own=$(dpkg --print-architecture)
	shift
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	# Until this process ends: it reads the lists.
	exec 7>"$dir/lock"
	flock 7
	for suite in "$@"; do
		kind=
		[[ $suite == *-security ]] && kind=-security
		mirror=$(debian_mirror "$kind")
		[ -n "$mirror" ] || continue
		echo "deb [arch=$arch,$own signed-by=$key] $mirror $suite main"
	done >"$dir/sources.list"
	[ -s "$dir/sources.list" ] ||
		die "no Debian mirror among this machine's apt sources"
	APT_OPTIONS=(-o "Dir::Etc::SourceList=$dir/sources.list"
		-o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$dir/lists"
		-o "Dir::Cache::Archives=$dir/archives"
		-o "Dir::Cache::pkgcache=$dir/pkgcache.bin" -o "Dir::Cache::srcpkgcache="
		-o "APT::Architecture=$arch" -o "APT::Architectures=$arch,$own"
		-o APT::Sandbox::User=root -o Acquire::Languages=none
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
	# The lists of the last hour are those of the same suites and mirrors.
	if ! cmp -s "$dir/sources.list" "$dir/read" ||
	   [ -z "$(find "$dir/read" -mmin -60)" ]; then
		rm -f "$dir/read"
		apt_update "${APT_OPTIONS[@]}"
		[ -z "$all_read" ] || cp "$dir/sources.list" "$dir/read"
	else
		all_read=1
	fi
}
