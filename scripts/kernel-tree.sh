# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced, after common.sh, by the scripts that build a kernel and this project
# from Debian's linux-source packages. The caller sets these variables.
project=${project:-}	# the project's folder
what=			# name of the kernel in messages
fragment=()		# files with lines for .config; later files override
kernel_options=()	# options of each make in the kernel tree
edits=()		# changes of the kernel's source: FILE OLD NEW...
# Folder of the trees in the cache: place/VERSION-KEY. KEY is a digest of
# fragment, kernel_options and edits.
place=
# The tree in use: linux/ is the kernel; ssd-iosched/ is a copy of the project,
# linked into the kernel, which remains when the project's folder is removed.
dir=

# Print a digest of the configuration; a comment that changes builds no kernel.
tree_key()
{
	{ grep -h CONFIG_ "${fragment[@]}"; printf '%s' "${kernel_options[*]}${edits[*]}"; } |
		sha256sum | cut -c 1-12
}

# Print the folder of series $1 with this configuration; it may be unfinished.
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

# Set version to the newest of series $1, searching other suites if need be.
find_version()
{
	version=$(candidate "$1") && return 0
	if [ "$(id -u)" = 0 ] && apt_update && version=$(candidate "$1"); then
		return 0
	fi
	say "linux-source-$1 is not in this machine's suites: searching ${SUITES[*]}"
	use_suites "$(dpkg --print-architecture)" "${SUITES[@]}"
	version=$(candidate "$1") || die "no suite has linux-source-$1"
}

# In the kernel's source in folder $1, replace each text OLD of edits by NEW.
edit_source()
{
	local root=$1 text

	set -- "${edits[@]}"
	while [ $# -gt 0 ]; do
		text=$(<"$root/$1")
		[[ $text == *"$2"* ]] || die "the kernel's $1 lacks: $2"
		printf '%s\n' "${text/"$2"/"$3"}" >"$root/$1"
		shift 3
	done
}

# Unpack the source of series $1 and print its folder.
unpack()
{
	local tmp new version

	find_version "$1"
	new=$place/$version-$(tree_key)
	mkdir -p "$place"
	tmp=$(mktemp -d "$place/.fetch.XXXXXX")
	# shellcheck disable=SC2064  # expand now
	trap "rm -rf '$tmp'" EXIT
	say "downloading linux-source-$1 $version"
	(cd "$tmp" && apt_download "linux-source-$1=$version") ||
		die "could not download linux-source-$1"
	dpkg-deb -x "$tmp"/*.deb "$tmp"
	say "unpacking"
	mkdir "$tmp/root" "$tmp/root/linux"
	tar -xJ -f "$tmp/usr/src/linux-source-$1.tar.xz" -C "$tmp/root/linux" \
		--strip-components=1
	edit_source "$tmp/root/linux"
	mv -T "$tmp/root" "$new"
	echo "$new"
}

# Call the kernel's make with gcc-12, as Debian does for 6.1 and 6.12.
kernel_make()
{
	nice make -C "$dir/linux" CC=gcc-12 HOSTCC=gcc-12 \
		"${kernel_options[@]}" "$@"
}

# Run the kernel's build; report progress twice a minute.
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

# Copy the project's files and link the copy into the tree. rsync compares
# checksums: an unchanged file keeps its time and is not compiled again; a file
# that changed gets a new time, even if its content is an older version.
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

# Print the lines that .config must have: the fragment, and each option of the
# project as $1 (empty: none).
wanted()
{
	grep -h CONFIG_ "${fragment[@]}" | tac | awk '
		{ option = $1 == "#" ? $2 : $1; sub("=.*", "", option) }
		!seen[option]++' | tac
	[ -z "$1" ] || sed -n "s/^config \(.*\)/CONFIG_\1=$1/p" "$project/Kconfig"
}

# Fail if .config lacks a line of the file wanted.
check_config()
{
	local line option missing=()

	while read -r line; do
		option=${line#\# }
		option=${option%%[= ]*}
		case $line in
		"# "*) ! grep -q "^$option=" "$dir/linux/.config" ;;
		*) grep -qx "$line" "$dir/linux/.config" ;;
		esac || missing+=("$line, but it has: $(grep -w "$option" \
			"$dir/linux/.config" || echo "no such option")")
	done <"$dir/wanted"
	[ ${#missing[@]} = 0 ] || {
		printf '%s\n' "${missing[@]}" >&2
		die "the $what's .config lacks these lines"
	}
}
