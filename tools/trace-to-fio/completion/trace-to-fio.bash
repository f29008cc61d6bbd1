# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Completion of trace-to-fio for bash: options, their words, files.

_trace_to_fio()
{
	local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} words=

	COMPREPLY=()
	# bash splits at "=".
	if [ "$option" = "=" ]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [ "$cur" = "=" ]; then
		option=${COMP_WORDS[COMP_CWORD - 1]}
		cur=
	fi
	case $option in
	--format) words="msr systor alibaba tencent cloudphysics spc csv blkparse blkparse-f ftrace \
			perf-trace lttng biosnoop xperf fiu femu mqsim disksim vscsi" ;;
	--time-unit) words="s ms us 100ns ns" ;;
	--op) words="read write" ;;
	--event) words="Q I D C" ;;
	--runs) words="together after" ;;
	--iolog) words="2 3" ;;
	--picture)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	--columns|--blkparse-format|--blkparse-event-format|--device|--compress|--capacity|--align) return ;;
	*)
		words="--format --columns --time-unit --op --event --blkparse-format \
			--blkparse-event-format --runs --device --skip-malformed --iolog --compress --capacity --align --info --json --picture \
			--quiet --version --help"
		[[ $cur = -* ]] || words= ;;
	esac
	if [ "$words" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -o filenames -F _trace_to_fio trace-to-fio
