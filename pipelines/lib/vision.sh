# shellcheck shell=bash
# vision.sh -- the start of the tables about vision-language models: MQuant's, and one of DPQ and of FPE2M2
#
#   vision FOLDER [MODEL [QUESTIONS [CALIBRATION]]]   goes to $work: results/FOLDER/KEY, where M.h5 is the model,
#                          for each M of $models: pre and post (the embedded models, with norms before and after the
#                          encoder's branches), or model (MODEL)
#   calibration M          M-calib.h5, its calibration tokens
#   hessian M OUT [OPTION...]   OUT-hessian.h5, from OUT.h5 and the calibration tokens of M; OUT-language-hessian.h5
#                          with OPTIONs
#   rounding OUT IN OPTION...   OUT.h5: IN.h5 with scales of int8 inputs from the calibration tokens (msq-calib)
#   weights IN HESSIAN VISUAL LANGUAGE [OPTION]...   the command that prints IN.h5 with the weights of encoder and
#                          projector in format VISUAL and of the language model in LANGUAGE, both with OPTIONs
#   choose RUN COMMAND [OPTION...]   the step that evaluates the questions on the model that COMMAND prints: RUN.record,
#                          and RUN.tsv, compared with M.h5; OPTIONs are eval-choice's
#   answers COLUMNS RUN BASE   the COLUMNS of RUN and of its differences from BASE, by eval-compare over all draws.
#                          $answer_columns: accuracies on easy, hard and all questions, KL of the answers from M.h5, and
#                          their differences; agreement: the share of questions with the same answer as M.h5
#   variants M             M-hessian.h5, and the inputs of the methods, with Hessians: M-smooth (SmoothQuant), M-quarot
#                          (the language model rotated), M-rotated (also encoder and projector, after ln2rms), M-split
#                          (M-rotated with columns split by rms-suppress); NAME-static and NAME-msq: with static
#                          scales of int8 inputs, one per layer, or in the language model one per modality
#   quantized WAY M VISUAL LANGUAGE   the command that prints M with weights in these formats, one scale per row, and
#                          int8 inputs, by RTN, SmoothQuant, QuaRot, QuaRot+MSQ, QuaRot+MSQ+LN2RMS or MQuant, which
#                          is the last with RMS
#   awq_scaled M FORMAT GROUP, awq M FORMAT GROUP   the same by AWQ, for the language model alone: the step that makes
#                          the input, and the command
#
# Tasks of questions are easy or hard.
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck disable=SC2034	# ${!group}
easy='glyph colour count side where pair' hard='string faint many more which'
# shellcheck disable=SC2034
answer_columns='easy easy_delta easy_delta_se hard hard_delta hard_delta_se acc acc_se acc_delta acc_delta_se
	kl kl_se kl_delta kl_delta_se agreement'
of_language="--layers '/model/layers/*'"	# the language model's layers

about_inputs() { cat <<'H'

MODEL: a vision-language model, a Hugging Face folder or a model file; without it the two embedded models: pre has the
norms of its encoder before the branches, post after them. QUESTIONS, CALIBRATION: JSON lines for eval-choice, with
their images in the same folder; calibration tokens are the contexts with the right answers. Without them, or '', those
of the embedded models. PTQ_LIMIT: only the first tokens of the calibration set. PTQ_TOKENS has no effect. A short run:
PTQ_LIMIT=2048 and fewer QUESTIONS. Results are kept in PTQ_RESULTS (results), in one folder for each combination of
these.
H
}
about_draws() { cat <<'H'

PTQ_DRAWS (1): repeats everything with other calibration questions (as many of CALIBRATION at random, with repetition),
signs of rotations and damping, the same for all methods. Standard errors are then over draws and questions, and the
table says which differences are separated.
H
}
prompts() { LC_ALL=C awk -v what="$1" -f "$here/prompts.awk" "$2"; }
images() {	# images FILE: the digest of these questions' images
	local names
	names=$(prompts images "$1")
	mapfile -t names <<<"$names"
	[ -z "${names[0]}" ] || (cd "$(dirname "$1")" && cat -- "${names[@]}" | sha256sum)
}
put() {	# put FOLDER FILE: the questions as FOLDER/questions.jsonl, with their images in the same folder
	local image
	[ $mode = make ] || { tell_put "$@"; return; }
	[ ! -e "$1/questions.jsonl" ] || return 0
	mkdir "$part/$1"
	prompts images "$2" | while IFS= read -r image; do case $image in
		/*) ;;
		../*|*/../*|*/..) fail 1 "$2: '$image' is not in the folder of the questions" ;;
		*) mkdir -p "$part/$1/$(dirname -- "$image")" && cp -- "$(dirname "$2")/$image" "$part/$1/$image" ;;
	esac; done
	cp -- "$2" "$part/$1/questions.jsonl"
	mv -T "$part/$1" "$1" || [ -e "$1/questions.jsonl" ]
}
tell_put() {	# prints the same as commands
	[ $mode = dry-run ] || return 0
	printf 'mkdir -p %s\ncp %q %s/questions.jsonl\n' "$1" "$2" "$1"
	# shellcheck disable=SC2016
	printf 'to=$PWD/%s; (cd %q; LC_ALL=C awk -v what=images -f %q %q | sed /^[/]/d | sort -u |' \
		"$1" "$(dirname "$2")" "$here/prompts.awk" "./$(basename "$2")"
	printf " xargs -r -d '\\\\n' cp --parents -t \"\$to\")\n"
}
vision() {
	local folder=$1 test calib m i sources=()
	arguments 3 "${@:2}"
	questions='' asked=''	# PTQ_QUESTIONS has no effect: the questions are an operand
	model=${operands[0]-}
	test=${operands[1]:-$here/../data/vlm/questions.jsonl} calib=${operands[2]:-$here/../data/vlm/calibration.jsonl}
	models=(model) sources=("$model")
	[ -n "$model" ] || models=(pre post) sources=("$here/../data/vlm-pre" "$here/../data/vlm-post") about=data/vlm
	for m in "${sources[@]}"; do
		if [ -d "$m" ]; then readable "$m"/config.json "$m"/*.json "$m"/*.safetensors
		else
			readable "$m"
			is_hdf5 "$m" || fail 1 "$m: is not HDF5, expected a model or a Hugging Face folder"
		fi
	done
	readable "$test" "$calib"
	for i in "${!sources[@]}"; do sources[i]=$(realpath -- "${sources[i]}"); done
	test=$(realpath -- "$test") calib=$(realpath -- "$calib") model=${model:+${sources[0]}}
	[ ! -f "$model" ] || model_state=$(state)
	model_sum=$(for m in "${sources[@]}"; do sums model "$m"; done)
	i=$(sums test "$test"; images "$test"; sums calibration "$calib"; images "$calib")
	enter "$folder" "$model_sum $i"
	put test "$test"
	put calib "$calib"
	link prompts.awk "$here/prompts.awk"
	for i in "${!models[@]}"; do
		m=${models[i]}
		if [ -d "${sources[i]}" ]; then once "$m.h5" model-import "${sources[i]}"
		else link "$m.h5" "${sources[i]}"; fi
	done
}
calibration() {
	step "LC_ALL=C awk -v what=texts -f prompts.awk calib/questions.jsonl | tr '\036' '\000' |" \
		"tokenize -q --null --special --model $1.h5 -o $1-texts.h5"
	step "LC_ALL=C awk -v what=images -f prompts.awk calib/questions.jsonl | sed 's|^[^/]|calib/&|' |" \
		"xargs -d '\n' -s 1000000 -n 1000000 -x" \
		"images-import -q --model $1.h5 --tokens $1-texts.h5 -o $1-calib.h5 --"
}
hessian() {
	step "hessian-accum -q${3:+ ${*:3}} --tokens $1-calib.h5$limit $2.h5 -o $2${3:+-language}-hessian.h5"
}
rounding() { step "msq-calib -q --act-format int8 --tokens ${1%%-*}-calib.h5$limit ${*:3} $2.h5 -o $1.h5"; }
weights() {
	local in=$1.h5 visual=$3 all="${*:5} --hessian $2.h5"
	case $visual-$4 in
		none-none) echo -n "cat $in" ;;
		none-*) echo -n "dpq-run -q $of_language --storage $4 $all $in" ;;
		"$4-$4") echo -n "dpq-run -q --storage $4 $all $in" ;;
		*) echo -n "dpq-run -q $of_language --storage $4 $all $in |" \
			"dpq-run -q --layers '!/model/*' --layers '!/lm_head' --storage $visual $all -" ;;
	esac
}
variants() {
	calibration "$1"
	hessian "$1" "$1"
	step "smooth-scale -q --hessian $1-hessian.h5 $1.h5 -o $1-smooth.h5"
	step "hadamard-rotate -q --language --seed 1 $1.h5 -o $1-quarot.h5"
	step "ln2rms -q $1.h5 -o $1-rms.h5"
	step "hadamard-rotate -q --seed 1 $1-rms.h5 -o $1-rotated.h5"
	step "rms-suppress -q $1-rotated.h5 -o $1-split.h5"
	hessian "$1" "$1-smooth"
	hessian "$1" "$1-quarot"
	hessian "$1" "$1-rotated"	# also for the split model, which computes the same
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
	MQuant) weights "$2-split-msq" "$2-rotated-hessian" "$3" "$4" --group channel --reorder none ;;
esac; }
awq_scaled() {	# without Hessians of the encoder and projector, awq-scale does not change them
	hessian "$1" "$1" "$of_language"
	step "awq-scale -q --hessian $1-language-hessian.h5 --storage $2 --group $3 $1.h5 -o $1-awq-$2.h5"
}
awq() {
	echo -n "dpq-run -q $of_language --storage $2 --group $3 --compensate none --scale-search minmax $1-awq-$2.h5"
}
choose() {
	step "$2 | eval-choice -q --special${3:+ ${*:3}} --questions test/questions.jsonl --reference ${1%%-*}.h5" \
		"-o $1.record >$1.tsv"
}
answers() {
	local group tasks=()
	compare_draws record "$2" "$3" >"$part/record"
	for group in easy hard; do
		mapfile -t tasks < <(awk -v of=" ${!group} " 'index(of, " " $1 " ") { print "--tasks=" $1 }' "$2.tsv")
		[ ${#tasks[@]} = 0 ] || compare_draws record "$2" "$3" "${tasks[@]}" | sed -n "1p; s/^acc/$group/p"
	done >"$part/groups"
	numbers "$1" 0 "$part/record" "$part/groups"
}
