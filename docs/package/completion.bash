# shellcheck shell=bash
# completion.bash -- completion of the options of ptqtools
#
#	. completion.bash						in bash, if `make install` did not do it
#	autoload -Uz bashcompinit && bashcompinit && . completion.bash	in zsh
#
# Options and their values come from TOOL --help, so they are never out of date. A FORMAT is completed by the formats
# that all tools support, a GLOB by the layers of the HDF5 files on the command line, if h5ls is installed.

_ptqtools_formats() {
	local e m
	echo int{2..8} uint{1..8} nf{2..8} e4m3fn e4m3ieee e5m2ieee mxfp4 nvfp4
	for e in 1 2 3 4 5 6; do for m in 0 1 2 3 4 5 6; do [ $((e + m)) -gt 7 ] || echo "e${e}m$m"; done; done
}

# The layers of the files, and for each name a pattern of the layers with this name in all blocks.
_ptqtools_layers() {
	local file
	for file in "${COMP_WORDS[@]}"; do
		case $file in *.h5) [ ! -f "$file" ] || h5ls -r "$file" 2>/dev/null ;; esac
	done | sed -n 's,^/\(.*\)/\(weight\|codes\|hessian\|order\) .*,\1,p' | awk '{ print; sub(/.*\//, "*/"); print }' | sort -u
}

# The argument of an option or letter, from the help text.
_ptqtools_argument() {
	sed -n "s/^  \(-., \|    \)$1=\([^ ]*\).*/\2/p; s/^  $1, [^ ]*=\([^ ]*\).*/\1/p" | head -n 1
}

_ptqtools() {
	local tool=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=$((COMP_CWORD - 1)) option='' prefix='' help
	local argument=FILE candidates='' kind='' IFS='
'
	case $current in	# bash ends a word at "=", zsh does not
	=) current='' ;;
	--*=*) option=${current%%=*} prefix=$option= current=${current#*=} ;;
	*) [ "${COMP_WORDS[before]}" != = ] || before=$((before - 1)) ;;
	esac
	[ -n "$prefix" ] || case ${COMP_WORDS[before]} in -*) option=${COMP_WORDS[before]} ;; esac
	COMPREPLY=()
	help=$("$tool" --help 2>/dev/null) || return 0
	[ -z "$option" ] || argument=$(_ptqtools_argument "$option" <<<"$help")
	[ -n "$argument" ] || argument=FILE	# the option has no argument, an operand follows
	case $argument in
	FORMAT*) candidates=$(_ptqtools_formats | tr ' ' '\n') ;;
	*'|FORMAT'*) candidates=$(_ptqtools_formats | tr ' ' '\n'; echo "${argument%%|*}") ;;
	GLOB) candidates=$(_ptqtools_layers) ;;
	FOLDER) kind=-d ;;
	[A-Z]*) case $argument in *'|'*) candidates=$(tr '|' '\n' <<<"$argument" | grep '^[a-z]') ;; N | BYTES | [A-Z]) ;; *) kind=-f ;; esac ;;
	*) candidates=$(tr '|' '\n' <<<"$argument") ;;
	esac
	case $prefix$current in
	--*=*) ;;
	-*) candidates=$(sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p' <<<"$help") kind='' ;;
	esac
	if [ -n "$kind" ]; then
		candidates=$(compgen "$kind" -- "$current")
		compopt -o filenames 2>/dev/null	# quotes names; zsh does it without
	fi
	set -o noglob
	# shellcheck disable=SC2207	# a line is a word
	COMPREPLY=($(prefix=$prefix current=$current awk 'index($0, ENVIRON["current"]) == 1 { print ENVIRON["prefix"] $0 }' \
		<<<"$candidates"))
	set +o noglob
}
complete -F _ptqtools aifs-order awq-scale dpq-run eval-choice eval-compare eval-generate eval-ppl exmy-pack exmy-sweep \
	fbq-run gar-order hadamard-rotate hessian-accum images-import ln2rms model-export model-import msq-calib plan-bits \
	qep-correct questions-import rms-suppress roofline sample-tokens smooth-scale tensor-diff tensor-info tensor-join tensor-stats tokenize
