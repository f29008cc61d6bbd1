# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Completion of ssdctl for bash: commands, options, drives, schedulers and their tunables; of
# ssd-probe: options and drives.

_ssdctl_drives()
{
	local drive

	for drive in /sys/block/*; do
		[ "$(cat "$drive/size")" != 0 ] && [ "$(cat "$drive/hidden")" != 1 ] || continue
		drive=${drive#/sys/block/}
		case $drive in
		loop*|zloop*|ram*|zram*|pmem*|nullb*|dm-*|md*|bcache*|zd*|ublkb*|nbd*|mtdblock*) ;;
		ubiblock*|rbd*|rnbd*|drbd*|fd*|sr*|mmcblk*boot*|mmcblk*rpmb|mmcblk*gp*) ;;
		*) echo "/dev/${drive//!//}" ;;
		esac
	done 2>/dev/null
}

# Print the tunables, as NAME=, of the scheduler $2: those of the drive $1 that has
# it, otherwise the parameters of its module.
_ssdctl_tunables()
{
	local queue=/sys/block/${1#/dev/}/queue folder=/sys/module/${2//-/_}_iosched/parameters
	local file

	[[ $(cat "$queue/scheduler" 2>/dev/null) != *"[$2]"* ]] || folder=$queue/iosched
	for file in "$folder"/*; do
		[ ! -e "$file" ] || echo "${file##*/}="
	done
	printf '%s=\n' nr_requests wbt_lat_usec read_ahead_kb max_sectors_kb nomerges rq_affinity \
		add_random
}

# Complete the file of --json=FILE; fail if another word is completed.
_ssdctl_json_file()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}

	case ${COMP_WORDS[1]} in
	status|recommend|apply|persist|revert|undo-all|top|report|hwdb) return 1 ;;
	esac
	if [ "$before$word" = "--json=" ]; then
		word=
	elif [ "$before" != = ] || [ "${COMP_WORDS[COMP_CWORD - 2]}" != --json ]; then
		return 1
	fi
	mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

_ssdctl()
{
	local commands="status recommend advise apply persist revert undo-all top report hwdb"
	local schedulers="none mq-deadline kyber bfq pass piq bp pai"
	local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} drive='' scheduler='' word
	local i number=0 options='' words='' valued

	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version --json --interval" -- "$cur")
		return
	fi
	# Options alone are of status.
	case $command in
	--json | --interval) COMP_WORDS=(ssdctl status "${COMP_WORDS[@]:1}")
		COMP_CWORD=$((COMP_CWORD + 1))
		command=status ;;
	esac
	case $command${COMP_WORDS[COMP_CWORD - 1]} in
	*--workload)
		mapfile -t COMPREPLY < <(compgen -W "desktop database copy" -- "$cur"
					 compgen -f -- "$cur")
		return ;;
	*--on|*--probe|*--html|*--contribute|*--fio-program|report--output|report-o)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	esac
	# bash splits at "=".
	_ssdctl_json_file && return
	if [ "$cur" = "=" ] || [ "${COMP_WORDS[COMP_CWORD - 1]}" = "=" ]; then
		return
	fi
	# Options with a value, which is no drive.
	valued=" --workload --on --size --probe --minutes --seed --html --contribute --fio "
	valued+="--fio-program --interval --batch --output -o "
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		-*) [[ $valued != *" $word "* ]] || i=$((i + 1)) ;;
		*)
			number=$((number + 1))
			[ "$number" != 1 ] || drive=$word
			[ "$number" != 2 ] || scheduler=$word ;;
		esac
	done
	case $command in
	status) options="--json --interval" ;;
	recommend) options="--probe --json" ;;
	revert|undo-all|hwdb) options="--json" ;;
	apply) options="--even-unsure --json" ;;
	advise) options="--workload --on --destroy --size --probe --minutes --seed --json --html \
			--contribute --apply --even-unsure --fio --fio-program --quiet" ;;
	persist) options="--by-model --by-path --recommended --all --print --even-unsure --json" ;;
	report) options="--output --json --with-names --contribute" ;;
	top) options="--interval --batch --once --json" ;;
	esac
	case $command:$number in
	hwdb:0) words="on off" ;;
	status:0|recommend:0|advise:0|apply:0|persist:0|revert:0|top:0|report:0)
		words=$(_ssdctl_drives) ;;
	apply:1|persist:1) words=$schedulers ;;
	apply:*|persist:*) words=$(_ssdctl_tunables "$drive" "$scheduler") ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words $options --help" -- "$cur")
	if [[ ${COMPREPLY[0]-} = *= ]]; then
		compopt -o nospace 2>/dev/null
	fi
}

_ssd_probe()
{
	local cur=${COMP_WORDS[COMP_CWORD]}

	COMPREPLY=()
	_ssdctl_json_file && return
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--output|--html|--from)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	--only|--seed|--range|--max-write) return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$(_ssdctl_drives) --destroy --quick --only --list --load \
		--seed --range --max-write --fresh --output --json --html --from --quiet --version \
		--help" -- "$cur")
}

complete -F _ssdctl ssdctl
complete -F _ssd_probe ssd-probe
