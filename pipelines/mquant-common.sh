# shellcheck shell=bash
# mquant-common.sh -- begins the tables about models that see pictures: MQuant's, and DPQ's and FPE2M2's of the kind
#
#   vision FOLDER [MODEL [QUESTIONS [CALIBRATION]]]   goes to $work: results/FOLDER/KEY, where M.h5 is the model, M-calib.h5 its
#                          calibration tokens and M-hessian.h5 their Hessians, for each M of $models: pre and post (the embedded
#                          ones, with norms before and behind the encoder's branches), or model (MODEL)
#   made OUT COMMAND...    once OUT-hessian.h5 is there, too: M-NAME.h5, a model that computes what M.h5 does, and its Hessians
#   rounding OUT IN OPTION...   OUT.h5: IN.h5 with scales of inputs from the calibration tokens (msq-calib)
#   weights IN HESSIAN VISUAL LANGUAGE [OPTION]...   the command that prints IN.h5 with weights of the encoder and projector in
#                          format VISUAL and those of the language model in LANGUAGE, each with OPTIONs; none: as they are
#   choose RUN BASE COMMAND   the command line that puts the questions to the model that COMMAND prints, unless that was done:
#                          RUN.tsv against M.h5, and against BASE if that is another run, and RUN.record; $aifs: --aifs
#   in_turn                runs the command lines on standard input, those first that are paired with none
#   answers RUN            its numbers under $answered, tab-separated: share of right answers to easy questions, what it has above BASE's
#                          and the standard error of that over questions; the same of hard questions; of all, with its own standard error
#                          behind it; KL of the answers from M.h5, its standard error, what it has above BASE's, the error of that;
#                          share of questions with the same answer as M.h5
#   variants M             what the methods quantize, with Hessians: M-smooth (SmoothQuant), M-quarot (the language model rotated),
#                          M-rotated (encoder and projector, too, behind ln2rms), M-split (of that, with channels taken out by
#                          rms-suppress); NAME-static and NAME-msq: with static scales of int8 inputs, one a layer, or
#                          in the language model one a modality
#   quantized WAY M VISUAL LANGUAGE   the command that prints M with weights in these formats, a scale a row, and int8 inputs, by RTN,
#                          SmoothQuant, QuaRot, QuaRot+MSQ, QuaRot+MSQ+LN2RMS or MQuant, which is that and RMS
#   awq_scaled M FORMAT GROUP, awq M FORMAT GROUP   the same by AWQ, of the language model alone: what is quantized, and the command
#   picture TABLE TITLE BASE PAPER   KL, right answers and the paper's numbers of TABLE.tsv, whose columns are model, visual, language, way,
#                          $answered and paper: BASE is what all is paired with, PAPER says what the paper's number is of
#
# KEY stands for the scripts FOLDER*.sh and this one, and all else that common.sh says. The questions' tasks are easy or hard as below.
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
easy='glyph colour count side where pair' hard='string faint many more which'
# shellcheck disable=SC2034
answered='easy\teasy_delta\teasy_delta_se\thard\thard_delta\thard_delta_se\tacc\tacc_se\tacc_delta\tacc_delta_se\tkl\tkl_se\tkl_delta\tkl_delta_se\tagreement'

about_inputs() { cat <<'H'

MODEL: a Hugging Face folder or a model file that sees pictures; without it the two embedded models, named by where the
norms of their encoders stand, before the branches (pre) or behind them (post). QUESTIONS, CALIBRATION: JSON lines as
eval-choice reads them, with their pictures beside them; calibration tokens are the contexts with the right answers. Without them,
or '', those of the embedded models. Results are kept in PTQ_RESULTS (results), in one folder for each combination of these.
H
}
prompts() { LC_ALL=C awk -v what="$1" -f "$here/prompts.awk" "$2"; }
pictures() {	# pictures FILE: what these questions show
	local names
	names=$(prompts images "$1")
	mapfile -t names <<<"$names"
	[ -z "${names[0]}" ] || (cd "$(dirname "$1")" && cat -- "${names[@]}" | sha256sum)
}
put() {	# put FOLDER FILE: the questions as FOLDER/questions.jsonl, and their pictures beside them
	local name
	[ ! -e "$1/questions.jsonl" ] || return 0
	mkdir "$part/$1"
	prompts images "$2" | while IFS= read -r name; do case $name in
		/*) ;;
		../*|*/../*|*/..) fail 1 "$2: '$name' is not beside it" ;;
		*) mkdir -p "$part/$1/$(dirname -- "$name")" && cp -- "$(dirname "$2")/$name" "$part/$1/$name" ;;
	esac; done
	cp -- "$2" "$part/$1/questions.jsonl"
	mv -T "$part/$1" "$1" || [ -e "$1/questions.jsonl" ]
}
vision() {
	local folder=$1 test calib m i sources=()
	shift
	arguments 3 "$@"
	model=${1:-} test=${2:-$here/../data/vlm/questions.jsonl} calib=${3:-$here/../data/vlm/calibration.jsonl}
	models=(model) sources=("$model")
	[ -n "$model" ] || models=(pre post) sources=("$here/../data/vlm-pre" "$here/../data/vlm-post")
	for m in "${sources[@]}"; do
		if [ -d "$m" ]; then readable "$m"/config.json "$m"/*.json "$m"/*.safetensors
		else readable "$m"; is_hdf5 "$m" || fail 1 "$m: is not HDF5, expected a model or a Hugging Face folder"; fi
	done
	readable "$test" "$calib"
	for i in "${!sources[@]}"; do sources[i]=$(realpath -- "${sources[i]}"); done
	test=$(realpath -- "$test") calib=$(realpath -- "$calib") model=${model:+${sources[0]}}
	[ ! -f "$model" ] || model_state=$(state)
	model_sum=$(for m in "${sources[@]}"; do sums model "$m"; done)
	i=$(sums test "$test"; pictures "$test"; sums calibration "$calib"; pictures "$calib"
		cat "$here/mquant-common.sh" "$here/prompts.awk" | sha256sum)
	enter "$folder" "$model_sum $i"
	put test "$test"
	put calib "$calib"
	say "calibrating"
	for i in "${!models[@]}"; do
		m=${models[i]}
		if [ -d "${sources[i]}" ]; then once "$m.h5" model-import "${sources[i]}"
		else ln -s "${sources[i]}" "$part/$m.h5" && mv -f "$part/$m.h5" .; fi
		calibration "$m"
		once "$m-hessian.h5" hessian-accum -q --tokens "$m-calib.h5" ${PTQ_LIMIT:+--limit "$PTQ_LIMIT"} "$m.h5"
	done
}
calibration() {
	local names all
	[ ! -e "$1-calib.h5" ] || return 0
	all=$(prompts images calib/questions.jsonl)
	prompts texts calib/questions.jsonl | tr '\036' '\000' | tokenize -q --null --special --model "$1.h5" -o "$part/texts.h5"
	mapfile -t names <<<"$all"
	(cd calib && images-import -q --model "../$1.h5" --tokens "../$part/texts.h5" -o "../$1-calib.h5" -- "${names[@]}")
}
made() {
	local m=${1%%-*}
	once "$1.h5" "${@:2}"
	once "$1-hessian.h5" hessian-accum -q --tokens "$m-calib.h5" ${PTQ_LIMIT:+--limit "$PTQ_LIMIT"} "$1.h5"
}
rounding() { once "$1.h5" msq-calib -q --act-format int8 --tokens "${1%%-*}-calib.h5" ${PTQ_LIMIT:+--limit "$PTQ_LIMIT"} "${@:3}" "$2.h5"; }
weights() {
	local in=$1.h5 hessian=$2.h5 visual=$3 language=$4
	shift 4
	case $visual-$language in
		none-none) echo -n "cat $in" ;;
		none-*) echo -n "dpq-run --layers '/model/layers/*' --storage $language $* --hessian $hessian $in" ;;
		"$language-$language") echo -n "dpq-run --storage $language $* --hessian $hessian $in" ;;
		*) echo -n "dpq-run --layers '/model/layers/*' --storage $language $* --hessian $hessian $in |" \
			"dpq-run --layers '!/model/*' --layers '!/lm_head' --storage $visual $* --hessian $hessian -" ;;
	esac
}
variants() {
	made "$1-smooth" smooth-scale -q --hessian "$1-hessian.h5" "$1.h5"
	made "$1-quarot" hadamard-rotate -q --language --seed 1 "$1.h5"
	once "$1-rms.h5" ln2rms -q "$1.h5"
	made "$1-rotated" hadamard-rotate -q --seed 1 "$1-rms.h5"
	once "$1-split.h5" rms-suppress -q "$1-rotated.h5"
	[ -e "$1-split-hessian.h5" ] || ln -s "$1-rotated-hessian.h5" "$1-split-hessian.h5"	# what it computes is the same
	rounding "$1-static" "$1" --act-mode static-tensor
	rounding "$1-smooth-static" "$1-smooth" --act-mode static-tensor
	rounding "$1-quarot-static" "$1-quarot" --act-mode static-tensor
	rounding "$1-quarot-msq" "$1-quarot" --act-mode static-modality
	rounding "$1-rotated-msq" "$1-rotated" --act-mode static-modality
	rounding "$1-split-msq" "$1-split" --act-mode static-modality
}
quantized() { case $1 in
	RTN) weights "$2-static" "$2-hessian" "$3" "$4" --group channel --compensate none ;;
	SmoothQuant) weights "$2-smooth-static" "$2-smooth-hessian" "$3" "$4" --group channel --compensate none ;;
	QuaRot) weights "$2-quarot-static" "$2-quarot-hessian" "$3" "$4" --group channel --reorder none ;;
	QuaRot+MSQ) weights "$2-quarot-msq" "$2-quarot-hessian" "$3" "$4" --group channel --reorder none ;;
	QuaRot+MSQ+LN2RMS) weights "$2-rotated-msq" "$2-rotated-hessian" "$3" "$4" --group channel --reorder none ;;
	MQuant) weights "$2-split-msq" "$2-split-hessian" "$3" "$4" --group channel --reorder none ;;
esac; }
awq_scaled() {	# without Hessians of the encoder and projector they stay as they are
	once "$1-language-hessian.h5" hessian-accum -q --layers '/model/layers/*' --tokens "$1-calib.h5" ${PTQ_LIMIT:+--limit "$PTQ_LIMIT"} "$1.h5"
	once "$1-awq-$2.h5" awq-scale -q --hessian "$1-language-hessian.h5" --storage "$2" --group "$3" "$1.h5"
}
awq() { echo -n "dpq-run --layers '/model/layers/*' --storage $2 --group $3 --compensate none --scale-search minmax $1-awq-$2.h5"; }
choose() {
	local run=$1 m=${1%%-*} paired="--paired $2.record"
	[ "$run" != "$2" ] || paired=
	[ -e "$run.tsv" ] || echo "{ $3; } 2>$part/$run.layers |" \
		"eval-choice -q --special ${aifs:+--aifs} --questions test/questions.jsonl --reference $m.h5 $paired -o $part/$run.record >$part/$run.tsv &&" \
		"mv -f $part/$run.layers $part/$run.record $part/$run.tsv . || { grep '^[a-z-]*: ' $part/$run.layers >&2; exit 1; }"
}
in_turn() {
	local lines first rest
	lines=$(cat)
	first=$(grep -v -e --paired <<<"$lines" || true) rest=$(grep -e --paired <<<"$lines" || true)
	[ -z "$first" ] || each <<<"$first"
	[ -z "$rest" ] || each <<<"$rest"
}
# A mean over tasks and its standard error from those of the tasks: sums of x and x² are in them.
answers() { awk -v OFS='\t' -F '\t' -v easy=" $easy " -v hard=" $hard " '
	function add(group, mark,  n, x, se) {
		if (!(mark in at)) return
		n = $2; x = $at[mark]; se = n > 1 ? $at[mark "_se"] : 0
		count[group, mark] += n; sum[group, mark] += n * x; squares[group, mark] += n * (se * se * (n - 1) + x * x)
	}
	function mean(group, mark,  n, m) {	# none of such questions: nothing; no difference, of the record itself: 0
		n = count[group, mark]; m = n ? sum[group, mark] / n : count[group, "acc"] ? 0 : ""
		return n && m * m < 1e-12 ? 0 : m
	}
	function error(group, mark,  n, m, v) {
		n = count[group, mark]; m = mean(group, mark)
		v = n > 1 ? (squares[group, mark] / n - m * m) / (n - 1) : 0
		return v > 1e-12 ? sqrt(v) : n ? 0 : m
	}
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$1 == "all" { for (m in at) all[m] = $at[m]; next }
	{ group = index(easy, " " $1 " ") ? "easy" : index(hard, " " $1 " ") ? "hard" : "other"; add(group, "acc"); add(group, "paired_acc_delta") }
	END { print mean("easy", "acc"), mean("easy", "paired_acc_delta"), error("easy", "paired_acc_delta"), mean("hard", "acc"), mean("hard", "paired_acc_delta"),
		error("hard", "paired_acc_delta"), all["acc"], all["acc_se"], all["paired_acc_delta"] + 0, all["paired_acc_delta_se"] + 0,
		all["kl"], all["kl_se"], all["paired_kl_delta"] + 0, all["paired_kl_delta_se"] + 0, all["agreement"] }' "$1.tsv"; }
picture() { table=$1 title=$2 base=$3 paper=$4 models=${models[*]} plot "$1" <<'G'
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced; set grid x y; set bars 0.4; set key off
table = system("echo $table"); models = system("echo $models"); file(m) = "< awk -F '\\t' '$1 == \"".m."\"' ".table.".tsv"
rows = int(system("awk -F '\\t' 'NR == 2 { m = $1 } $1 == m' ".table.".tsv | wc -l"))
about(m) = m eq "pre" ? "pre-norm encoder" : m eq "post" ? "post-norm encoder" : m; step(i) = (i - 0.5 * (words(models) + 1)) * 0.24
array color[2] = ["#4477aa", "#cc6677"]
label(d) = (strcol(2) eq strcol(3) ? strcol(2) : "V ".strcol(2).", L ".strcol(3))."  ".strcol(4)
of(r, unit) = r > 5 * unit ? 10 * unit : r > 2 * unit ? 5 * unit : 2 * unit; ticks(r) = of(r, r > 0 ? 10 ** floor(log10(r)) : 1)
stats table.".tsv" every ::1 using 20 nooutput; papers = ticks((STATS_max - STATS_min) / 4)
stats table.".tsv" every ::1 using (100 * $11) nooutput; answers = ticks((STATS_max - STATS_min) / 4)
set yrange [-rows + 0.4:0.6]; set offsets graph 0.03, graph 0.03, 0, 0
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1240,190 + 30 * rows font "sans,13" background "white" } else { set terminal pngcairo size 1240,190 + 30 * rows font "sans,11" }
	set output part.table.".".t
	set multiplot title system("echo \"$title\"")."\nV: encoder and projector, L: language model; bars: one standard error over questions, of right answers of the difference from ".system("echo \"$base\"") noenhanced
	set tmargin 5; set bmargin 4; set format y "%s"
	set key at screen 0.02, screen 0.03 left bottom Left reverse horizontal
	set lmargin at screen 0.27; set rmargin at screen 0.50; set xlabel "KL of the answers from 16 bits, nats a token" noenhanced; set logscale x; set format x "10^{%T}"
	plot for [i=1:words(models)] file(word(models, i)) using ($15 > 0 ? $15 : NaN):(-$0 - step(i)):16 with xerrorbars title about(word(models, i)) pt 7 ps 1.1 lw 2 lc rgb color[i], \
		file(word(models, 1)) using (NaN):(-$0):ytic(label(0)) notitle
	set key off; set format y ""; unset logscale x; set format x "%g"
	set lmargin at screen 0.53; set rmargin at screen 0.74; set xtics answers; set xlabel "right answers, %" noenhanced
	plot for [i=1:words(models)] file(word(models, i)) using (100 * $11):(-$0 - step(i)):(100 * $14) with xerrorbars pt 7 ps 1.1 lw 2 lc rgb color[i]
	set lmargin at screen 0.77; set rmargin at screen 0.97; set xtics papers; set xlabel system("echo \"$paper\"") noenhanced
	plot for [i=1:words(models)] file(word(models, i)) using 20:(-$0 - step(i)) with points pt 5 ps 1.1 lc rgb color[i]
	unset multiplot; unset ytics; set ytics scale 0 noenhanced; set xtics autofreq
}
G
}
