#!/usr/bin/env bash
# cluster.sh [MODEL [TEST [CALIBRATION]]] -- one model on many machines: calibrated, quantized and evaluated in shards
#
# The Hessians are summed in PTQ_SHARDS (16; at most 4096) shards over windows, and added in their order. The blocks are
# quantized in as many shards by DPQ (4-bit weights in groups of PTQ_GROUP (128), FP8 arithmetic) and joined:
# quantized.h5. The table compares it with the model. The bytes depend on the number of shards, and not on the runner or
# the number of workers.
#
#   PTQ_EACH=pipelines/each/slurm pipelines/cluster.sh MODEL TEST CALIBRATION
#
# each/slurm, each/parallel and each/local --help describe the runners. A failed shard is named; the same command again
# makes what is missing. The shards need PTQ_SHARDS times the room of the Hessians (docs/scale.md).
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
begin "$name" "$@"
n=${PTQ_SHARDS:-16} group=${PTQ_GROUP:-128} hessians='' quantized=''
# the line that joins the shards names all of them; Linux starts no program with a text of more than 128 KiB
[ "$n" -le 4096 ] || fail 2 "PTQ_SHARDS: '$n' is more than 4096"

tokens calib.h5 "$calib" 1
tokens test.h5 "$test" 2
# the last of so many shards has no window; the error has the number of windows
count='/ has no window: the file has [0-9]+$/ { have = $NF; next } { print | "cat >&2" } END {'
count+=' if (have && have < n) print "calib.h5: " have " windows for " n " shards: set PTQ_SHARDS to at most " have |'
count+=' "cat >&2";'
count+=' if (have < n) exit 1; print have }'
step "( hessian-accum -q --shard '1000000/1000000' --tokens calib.h5 $window$limit model.h5" \
	"2>&1 >/dev/null || : ) | awk -v n=$n '$count' >windows.txt"
for ((i = 1; i <= n; i++)); do
	step "test -s windows.txt &&" \
		"hessian-accum --resume --shard $i/$n --tokens calib.h5 $window$limit model.h5 -o hessian-$i.h5"
	hessians+="hessian-$i.h5 "
	step "dpq-run -q --resume --shard $i/$n --storage uint4 --group $group --compute e4m3fn --hessian hessian.h5" \
		"model.h5 -o quantized-$i.h5"
	quantized+="quantized-$i.h5 "
done
step "hessian-accum $hessians-o hessian.h5"
step "tensor-join $quantized-o quantized.h5"
step "eval-ppl --tokens test.h5 $window --reference model.h5 quantized.h5 -o evaluation.record >evaluation.tsv"
run_steps

result() {
	awk -F '\t' -v names="$1" '{ v[$1] = $2 } END {
		n = split(names, name, " ")
		for (i = 1; i <= n; i++) printf "%s%s", v[name[i]], i < n ? FS : "\n"
	}' "$2.tsv"
}
tabulate cluster 'kl kl_se_windows nll reference_nll_delta top_agreement' result <<'T'
result	@
quantized.h5	@evaluation
T
peaks
say "model: $work/quantized.h5  table: $work/cluster.tsv"
