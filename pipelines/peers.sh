#!/usr/bin/env bash
# peers.sh [MODEL [TEST [CALIBRATION]]] -- models quantized by other packages, next to ours with the same settings
#
# llm-compressor and GPTQModel, on the same calibration tokens as ours, in windows of PTQ_CTX. llm-compressor: 4-bit
# weights in groups of PTQ_GROUP (64), with and without zero points, rounded to nearest, by GPTQ in two column orders,
# and by AWQ; 8-bit integers and FP8 (E4M3) with one scale per row and inputs rounded with one scale per token.
# GPTQModel: 4-bit weights in groups without zero points, by GPTQ. The checkpoints of the packages are imported.
#
# Each of theirs is paired with ours of the same settings: kl_delta and nll_delta are theirs minus ours. Our defaults
# are paired with theirs by GPTQ with a column order (ours minus theirs), or with ours of the same settings if theirs is
# absent. output_error: tr(E H Eᵀ)/tr(W H Wᵀ) with the Hessians of the unquantized model, geometric mean over layers;
# AWQ has none, because it changes the inputs of layers. peer_nll: NLL of the first four windows by transformers, inputs
# not rounded. our_nll: NLL of the imported model by eval-ppl.
#
# PEERS: a Python with torch, transformers, compressed_tensors, llmcompressor, h5py. GPTQMODEL: a Python with torch,
# transformers, gptqmodel, optimum, h5py; the default is PEERS. Without the packages only ours are measured.
# AWQ, theirs and ours, reads the first four windows.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
# shellcheck source=pipelines/lib/packages.sh
. "$lib/packages.sh"
begin "$name" "$@"
group=${PTQ_GROUP:-64} ctx=${PTQ_CTX:-256}
few=$((4 * (ctx - 1)))
find_packages
calibrate
step "hessian-accum --tokens calib.h5 $window --limit $few model.h5 -o few.h5"

listed=()
run() {	# run NAME BASE ROW: the evaluation of NAME.h5, and ROW of the table, with differences from BASE.h5
	step "$(evaluated "$1")"
	step "tensor-stats $1.h5 >$1.stats"
	case $1 in
		*awq*) step "cut -f 1 $1.stats >$1.report" ;;
		*) step "tensor-diff --reference model.h5 --hessian hessian.h5 $1.h5 | cut -f 1,7 >$1.report" ;;
	esac
	listed+=("$1	$2	$3")
}
theirs() {	# theirs METHOD SCHEME LIMIT: the model that the peer quantizes, its NLL, and the imported model
	local name=theirs-$1-$2 python=PEERS
	case $1 in
		awq) packaged "$name" llmcompressor "$@" ;;
		gptqmodel) python=GPTQMODEL && packaged "$name" gptqmodel gptq-none "${@:2}" '--basis model.h5' ;;
		*) packaged "$name" llmcompressor "$@" '--basis model.h5' ;;
	esac
	step "\"\$$python\" -B peers.py nll $name.tar test.h5 $ctx $few >$name.peer"
	step "model-export -q --weights-only -o $name-w $name.h5 && model-import -q $name-w |" \
		"eval-ppl --tokens test.h5 $window --limit $few >$name.ours && rm -r $name-w"
	run "$name" "ours-$1-$2" "theirs	$1	$2"
}
pair() {	# pair METHOD SCHEME LIMIT COMMAND
	step "$4 -o ours-$1-$2.h5"
	run "ours-$1-$2" "ours-$1-$2" "ours	$1	$2"
	case $1 in
		gptqmodel) [ -n "$missing_gptq" ] || theirs "${@:1:3}" ;;
		*) [ -n "$missing" ] || theirs "${@:1:3}" ;;
	esac
}

grid="--group $group --scale-search minmax" all=${PTQ_LIMIT:-0}
sequential="--sequential --tokens calib.h5 $window$limit model.h5"
row='--group channel --scale-search minmax --act-mode dynamic-token --compensate none model.h5'
static='--reorder full --static-groups'
pair rtn uint4 $few "dpq-run -q --compensate none --storage uint4 $grid model.h5"
pair gptq-none uint4 "$all" "dpq-run -q --reorder none --group-view original --storage uint4 $grid $sequential"
pair gptq-static uint4 "$all" "dpq-run -q $static --storage uint4 $grid $sequential"
base=theirs-gptq-static-uint4
[ -z "$missing" ] || base=ours-gptq-static-uint4
step "dpq-run -q --storage uint4 --group $group $sequential -o ours-defaults.h5"
run ours-defaults $base "ours	defaults	uint4"
pair awq uint4 $few "awq-scale -q --hessian few.h5 --group $group model.h5 | dpq-run -q --compensate none $grid"
pair rtn int4 $few "dpq-run -q --compensate none --storage int4 $grid model.h5"
pair gptq-static int4 "$all" "dpq-run -q $static --storage int4 $grid $sequential"
pair gptqmodel int4 "$all" "dpq-run -q --reorder none --storage int4 --scale-dtype f16 $grid $sequential"
pair rtn w8a8 $few "dpq-run -q --storage int8 --act-format int8 $row"
pair rtn fp8 $few "dpq-run -q --storage e4m3fn --act-format e4m3fn $row"
run_steps

columns='output_error nll_rise nll_rise_se nll_delta nll_delta_se kl kl_se kl_delta kl_delta_se'
nll() { [ ! -e "$1" ] || awk 'NF == 1 || $1 == "nll" { print $NF }' "$1"; }
rows() {
	local name base row
	printf 'who\tmethod\tscheme\tbits\t@\tpeer_nll\tour_nll\n'
	for row in "${listed[@]}"; do
		IFS=$'\t' read -r name base row <<<"$row"
		printf '%s\t%s\t@%s %s\t%s\t%s\n' "$row" "$(cell "$name.stats" bits all)" "$name" "$base" \
			"$(nll "$name.peer")" "$(nll "$name.ours")"
	done
}
rows | tabulate peers "$columns" comparison
