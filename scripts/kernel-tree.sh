# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced, after common.sh, by the scripts that build a kernel with this project
# in it from Debian's linux-source packages. They set these afterwards.
project=${project:-}	# this project's folder
what=			# the kernel, in messages
fragment=()		# files that say what the .config has to; a later one overrides
kernel_options=()	# for each make in the kernel's tree
# Where in the cache the trees are: place/VERSION-KEY, KEY standing for the two
# above.
place=
# One of them: linux/ is the kernel, ssd-iosched/ a copy of the project, which
# outlives its folder and is linked into the kernel.
dir=

# Debian's suites for a series that the machine's own suites don't have.
SUITES=(bookworm bookworm-security trixie trixie-security trixie-backports)

tree_key()
{
	{ cat "${fragment[@]}"; printf '%s' "${kernel_options[*]}"; } |
		sha256sum | cut -c 1-12
}

# Folder of a series that is built, or being built, with this configuration.
known()
{
	[ -d "$place" ] || return 1
	find "$place" -mindepth 1 -maxdepth 1 -type d \
		-name "$1[.-]*-$(tree_key)" | sort -rV | sed -n 1p | grep .
}

candidate()
{
	apt-cache "${APT_OPTIONS[@]}" policy "linux-source-$1" |
		sed -n 's/^  Candidate: \([0-9].*\)/\1/p' | grep .
}

# Set version to what apt has of series $1, from wherever it takes.
find_version()
{
	version=$(candidate "$1") && return 0
	[ "$(id -u)" != 0 ] || { apt_update && version=$(candidate "$1"); } &&
		return 0
	say "linux-source-$1 is not in this machine's suites: looking in ${SUITES[*]}"
	use_suites "${SUITES[@]}"
	version=$(candidate "$1") || die "there is no linux-source-$1 to be had"
}

# Unpack the source of series $1 and print the folder where it is.
unpack()
{
	local tmp new version

	find_version "$1"
	new=$place/$version-$(tree_key)
	mkdir -p "$place"
	tmp=$(mktemp -d "$place/.fetch.XXXXXX")
	# shellcheck disable=SC2064  # the directory of now
	trap "rm -rf '$tmp'" EXIT
	say "downloading linux-source-$1 $version"
	(cd "$tmp" && apt_download "linux-source-$1=$version") ||
		die "could not download linux-source-$1"
	dpkg-deb -x "$tmp"/*.deb "$tmp"
	say "unpacking"
	mkdir "$tmp/root" "$tmp/root/linux"
	tar -xJ -f "$tmp/usr/src/linux-source-$1.tar.xz" -C "$tmp/root/linux" \
		--strip-components=1
	mv -T "$tmp/root" "$new"
	echo "$new"
}

# The kernel's make; gcc-12 is what Debian's own 6.1 and 6.12 are built with.
kernel_make()
{
	nice make -C "$dir/linux" CC=gcc-12 HOSTCC=gcc-12 \
		"${kernel_options[@]}" "$@"
}

# Run the kernel's build and say how far it is twice a minute.
build()
{
	local pid started=$SECONDS

	kernel_make -j "$(nproc)" "$@" >"$dir/log" 2>&1 &
	pid=$!
	while sleep 0.5; kill -0 $pid 2>/dev/null; do
		[ $(((SECONDS - started) % 30)) = 29 ] || continue
		say "$what: $(grep -c '^  CC ' "$dir/log") files compiled in $((SECONDS - started)) s"
		sleep 1
	done
	if ! wait $pid; then
		grep -E -B 2 -A 10 'error:|Error |undefined' "$dir/log" | tail -n 40 >&2
		die "the $what does not build: $dir/log"
	fi
}

# The project's files as they are now, linked into the tree. What is the same
# stays, and what is not is new, even if it is an older version of the file.
link_project()
{
	rsync -rlp --checksum --delete --exclude=/.git --filter=':- .gitignore' \
		--filter='P *.o' --filter='P *.a' --filter='P *.ko' \
		--filter='P .*.cmd' --filter='P *.mod' --filter='P *.mod.c' \
		--filter='P *.gcno' --filter='P modules.order' \
		--filter='P /iosched-kernel.h' \
		"$project/" "$dir/ssd-iosched/"
	"$dir/ssd-iosched/scripts/link-into-kernel" "$dir/linux" >/dev/null
}

# What the .config must say: the fragment, and all options of ours as $1.
wanted()
{
	grep -h CONFIG_ "${fragment[@]}" | tac | awk '
		{ option = $1 == "#" ? $2 : $1; sub("=.*", "", option) }
		!seen[option]++' | tac
	sed -n "s/^config \(.*\)/CONFIG_\1=$1/p" "$project/Kconfig"
}

# See that nothing of what was asked for in the file wanted got lost.
check_config()
{
	local line option missing=()

	while read -r line; do
		option=${line#\# }
		option=${option%%[= ]*}
		case $line in
		"# "*) ! grep -q "^$option=" "$dir/linux/.config" ;;
		*) grep -qx "$line" "$dir/linux/.config" ;;
		esac || missing+=("$line, but: $(grep -w "$option" \
			"$dir/linux/.config" || echo "no such option")")
	done <"$dir/wanted"
	[ ${#missing[@]} = 0 ] || {
		printf '%s\n' "${missing[@]}" >&2
		die "the $what's .config is not what was asked for"
	}
}
