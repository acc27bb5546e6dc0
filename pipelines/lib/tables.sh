# shellcheck shell=bash disable=SC2154
# tables.sh -- tables and plots of the results of steps
#
#   table NAME [SHOWN]     moves the complete table $part/NAME.tsv to NAME.tsv, and shows it
#   show NAME [SHOWN]      prints NAME.tsv, rounded and aligned; SHOWN: its columns and their heads (show.awk)
#   tabulate NAME COLUMNS FUNCTION [SHOWN]   a table whose lines are on standard input: the first line has names of
#                          columns, the others have values, separated by tabs. In the first line @ is replaced by the
#                          COLUMNS (names, separated by blanks), in the others @WORD... by the output of FUNCTION
#                          COLUMNS WORD...: numbers separated by tabs. The first WORD is a run, RUN.* are the files of
#                          its steps; .steps/NAME.runs stores the words of each line
#                          With several draws, columns for each NAME_delta_se follow it: its degrees of freedom, its
#                          parts, and whether the difference is separated. The number of differences is said
#   comparison COLUMNS RUN BASE [BITS]   the COLUMNS of two runs that `measure` made, by eval-compare from the records
#                          of all draws (comparison.awk); $compared: the usual columns; BITS: the column bits_a_weight
#   over_draws FILE KEY [NAME]   the mean over draws of column NAME (the second one) in the line that begins with KEY
#   bits_of RUN            bits per weight of RUN.stats, which tensor-stats printed: such a mean
#                          Either as an assignment of its own: its failure then ends the script
#   plot NAME [FILE]       NAME.svg, which gnuplot makes from NAME.tsv by FILE (SCRIPT.gp), a path or a name in the
#                          folder plots next to the script, after plots/style.gp. Its second line has $about, or the
#                          name of the model; $group; and the number of tokens or questions of the test set
#   cell FILE NAME KEY     column NAME of the line that begins with KEY
# shellcheck disable=SC2034
compared='output_error error_percent error_percent_se nll nll_rise nll_rise_se nll_delta nll_delta_se
	kl kl_se kl_delta kl_delta_se'

table() { mv -f "$part/$1.tsv" . && show "$@"; }
show() { awk -v shown="${2-}" -f "$lib/numbers.awk" -f "$lib/show.awk" "$1.tsv"; }
tabulate() {
	local line values left right words every runs='' shown="${4-}"
	[ -z "$asked" ] || [ -z "$shown" ] || shown+=' acc=accuracy acc_delta=Δaccuracy'
	of_draws "$2${asked:+ $asked}"
	values=$(IFS=$'\t'; echo "${every[*]}")
	while IFS= read -r line; do
		left=${line%%@*} right=${line#*@}
		[ "$line" != "$left" ] || fail 1 "$1: a line of the table without @: $line"
		read -ra words <<<"${right%%$'\t'*}"
		runs+="${words[*]}"$'\n'
		[ ${#words[@]} = 0 ] || values=$("$3" "${every[*]}" "${words[@]}")
		[[ $right = *$'\t'* ]] && right=$'\t'${right#*$'\t'} || right=
		printf '%s%s%s\n' "$left" "$values" "$right"
	done >"$part/$1.tsv"
	printf %s "$runs" >".steps/$1.runs"
	table "$1" "$shown"
	[ "$draws" = 1 ] || count_verdicts "$1"
	[ -z "$asked" ] || say "accuracy of the unquantized model: $(cell model.choice acc all)"
}
count_verdicts() {	# count_verdicts NAME: says how many differences NAME.tsv has, and how many are separated
	say "$(awk -F '\t' '
		NR == 1 { for (i = 1; i <= NF; i++) verdict[i] = $i ~ /_separated$/; next }
		{ for (i in verdict) if (verdict[i]) { n += $i ~ /^(yes|no)$/; yes += $i == "yes" } }
		END { printf "%d of %d differences are separated; %.3g would be by chance alone", yes, n, n / 20 }
	' "$1.tsv")"
}
of_draws() {	# of_draws COLUMNS: sets $every, these columns and those of several draws; adds verdicts to $shown
	local name words
	every=()
	read -rd '' -a words <<<"$1" || true
	for name in "${words[@]}"; do
		every+=("$name")
		[[ $draws != 1 && $name = *_delta_se ]] || continue
		every+=("${name%_se}_df" "${name}_draws" "${name}_windows" "${name%_se}_separated")
		name=${name%_se}
		[[ " $shown" != *" $name="* ]] || shown+=" ${name}_separated=separated"
	done
}
comparison() {
	local run kind files inputs=()
	[ -n "${3-}" ] || fail 1 "$2: a line of the table has no base"
	for run in "$3" "$2"; do
		[ -e "$run.report" ] || fail 1 "no run is called '$run'"
		files_of "$run.report"
		inputs+=("${files[@]}")
	done
	for kind in record ${asked:+answers}; do
		compare_draws "$kind" "$2" "$3" >"$part/$kind"
		inputs+=("$part/$kind")
	done
	numbers "$1" "$draws" "${inputs[@]}" "bits=${4-}"
}
# compare_draws KIND RUN BASE [OPTION...]: prints the comparison of RUN.KIND with BASE.KIND over draws
compare_draws() {
	local files of_run
	files_of "$2.$1"
	of_run=("${files[@]}")
	files_of "$3.$1"
	# not a step: PTQ_LOG would grow each time
	PTQ_LOG='' eval-compare -q "${@:4}" "${of_run[@]}" "${files[@]}"
}
# numbers COLUMNS REPORTS FILE...: prints COLUMNS from REPORTS reports of the base, as many of the run, and tables of
# eval-compare; bits=N among the files: the column bits_a_weight
numbers() {
	awk -v columns="$1" -v reports="$2" -f "$lib/report.awk" -f "$lib/comparison.awk" "${@:3}"
}
over_draws() {
	local files
	files_of "$1"
	awk -F '\t' -v key="$2" -v name="${3-}" '
		FNR == 1 { c = name == "" ? 2 : 0; for (i = 1; i <= NF; i++) if (name != "" && $i == name) c = i }
		c && $1 == key && $c ~ /[0-9]/ { s += $c; n++ }
		END { if (n != ARGC - 1) exit 1; print s / n }' "${files[@]}" || fail 1 "$1: has no ${3-} of $2"
}
bits_of() { over_draws "$1.stats" all bits; }
cell() {
	awk -F '\t' -v name="$2" -v key="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } $1 == key { print $c }' "$1"
}
peaks() {	# the peak memory of each tool: of this run with PTQ_LOG, else of all runs in the folder
	local most
	[ -f "$PTQ_LOG" ] || return 0
	most=$(awk -F '\t' -v logged="$logged" 'NR > logged && NF == 4 && $2 > m[$1] { m[$1] = $2 }
		END { for (t in m) print t, m[t] }' "$PTQ_LOG" | sort | paste -sd ,)
	[ -z "$most" ] || say "peak memory, MiB: $most"
}
# called MODEL: the name of a model's file or folder. A file model.h5 has the name of its folder.
called() {
	local n=${1%/model.h5}
	n=${n##*/} n=${n%.h5}
	echo "${n//[[:cntrl:]]/?}"
}
described() {	# the group, and the size of the test set
	local n=''
	case ${group-} in
		channel) echo -n ', one scale per row' ;;
		tensor) echo -n ', one scale per tensor' ;;
		?*) echo -n ", groups of $group" ;;
	esac
	if [ -e test/questions.jsonl ]; then n="$(grep -c . test/questions.jsonl) questions"
	else n=$(awk -F '\t' '$1 == "tokens" && $2 ~ /^[0-9]+$/ { print $2 " tokens"; exit }' ./*.tsv); fi
	echo -n "${n:+, $n}"
}
draw() {	# draw NAME FILE: $part/NAME.svg
	export part
	draws=${draws:-1} table=$1.tsv out=$part/$1.svg plots=$here/plots GNUPLOT_LIB=$here/plots \
		gnuplot -d "$here/plots/style.gp" "$2"
}
plot() {
	local of=${about-} by=${2:-$name.gp}
	[[ $by = */* ]] || by=${script%/*}/plots/$by
	[ -r "$by" ] || fail 1 "$by: no such file; plot $1 needs it"
	[ -n "$of" ] || [ -z "$model" ] || of=$(called "$model")
	about=${of:+$of$(described)} model=$of draw "$1" "$by"
	mv -f "$part/$1.svg" .
	peaks
	say "table: $work/$1.tsv  plot: $work/$1.svg"
}
