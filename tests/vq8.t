#!/bin/sh
# vq8.t -- formats whose codes encode 8 weights each, with a quantizer of the format (tests/vq8.h), of 6 and 16 bits
#
# Every tool that reads a model supports them like any other format. A tool that needs a grid refuses them by name.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
usual=${PTQ_BIN:-$top/bin} PATH=${PTQ_BUILD:-$top/build}/vq8/bin:$PATH
model=$top/tests/ref/llama-gqa.h5

py make
ppl() { eval-ppl --tokens tokens.h5 "$@"; }
differ() {	# REFERENCE FILE: whether layers exist, and how many differ
	tensor-diff --reference "$1" "$2" 2>diff.err |
		awk -F '\t' 'NR > 1 && $1 != "all" { n++; d += $3 > 0 || $6 > 0 } END { print (n > 0), d + 0 }'
}
of_layer() { tensor-stats "$1" | awk -F '\t' -v layer="$2" '$1 ~ layer "$" { print $2, $7 }'; }
same() {	# NAME FILE PLAIN: both files have the same weights and likelihoods
	is "$1: the weights equal the decoded ones" "$(differ "$3" "$2")" '1 0'
	is "$1: ... the likelihoods of many tokens, too" "$(ppl --ctx 32 "$2")" "$(ppl --ctx 32 "$3")"
	is "$1: ... of few tokens" "$(ppl --ctx 8 --limit 16 "$2")" "$(ppl --ctx 8 --limit 16 "$3")"
}
for f in vq8 vq16; do
	for group in 16 channel tensor; do
		ok "dpq-run, $f, group $group" dpq-run -q --storage $f --group $group "$model" -o q.h5
		bits=$(py plain q.h5 plain.h5 0/mlp/down_proj)
		same "$f, group $group" q.h5 plain.h5
		is "$f, group $group: bits" "$(of_layer q.h5 /0/mlp/down_proj)" "$f $bits"
	done
	dpq-run -q --storage $f --group 10 odd.h5 -o o.h5
	bits=$(py plain o.h5 odd-plain.h5 a)
	is "$f, tiles beyond the edge: the weights" "$(differ odd-plain.h5 o.h5)" '1 0'
	is "$f, tiles beyond the edge: bits" "$(of_layer o.h5 /a)" "$f $bits"
done
dpq-run -q --storage vq8 --group 16 "$model" -o q.h5
for how in '--act-format int8' '--act-format e4m3fn --scale-dtype f16'; do
	# shellcheck disable=SC2086
	dpq-run -q --storage vq8 --group 16 --act-mode dynamic-token $how "$model" -o a.h5
	py plain a.h5 plain.h5; same "$how" a.h5 plain.h5
done
ok 'codes are packed' exmy-pack q.h5 -o p.h5
words() { py words "$@"; }
is 'packed: 6 bits per code' "$(words p.h5 model/layers/0/mlp/down_proj/packed)" '(16, 6) 44 32'
is 'packed: the same numbers' "$(ppl --ctx 32 p.h5)" "$(ppl --ctx 32 q.h5)"
exmy-pack --unpack p.h5 -o back.h5; ok 'unpacked: the same codes' h5diff --exclude-attribute / q.h5 back.h5
dpq-run -q --storage vq8 --group 16 --compute e4m3fn --act-mode dynamic-token "$model" | tee c.h5 | exmy-pack -o pc.h5
is 'with a compute format: the same result packed and unpacked' "$(ppl --ctx 32 pc.h5)" "$(ppl --ctx 32 c.h5)"
ok '... and it rounds weights' test "$(ppl --ctx 32 c.h5)" != "$(ppl --ctx 32 q.h5)"
dpq-run -q --storage vq8 --group 16 <"$model" | exmy-pack | exmy-pack --unpack >s.h5
ok 'streams: the same model' h5diff --exclude-attribute / q.h5 s.h5
is 'streams: the same likelihood' \
	"$(dpq-run -q --storage vq8 --group 16 <"$model" | ppl --ctx 32 -)" "$(ppl --ctx 32 q.h5)"
for i in 1 2; do dpq-run -q --storage vq8 --group 16 --shard $i/2 "$model" -o shard$i.h5; done
ok 'shards are joined' tensor-join -q shard2.h5 shard1.h5 -o joined.h5
ok '... to the same model' h5diff --exclude-attribute / q.h5 joined.h5

dpq-run -q --storage vq16 --group 16 "$model" -o q16.h5
no '16 bits: no codes to pack' 1 'holds no layer with codes to pack' exmy-pack q16.h5 -o none.h5
printf '*/down_proj storage=vq16 group=16\n' >plan
dpq-run -q --storage vq8 --group 16 --plan plan "$model" -o both.h5
exmy-pack both.h5 -o pb.h5
is '16 bits: together with packed codes' "$(of_layer pb.h5 /0/mlp/down_proj) $(ppl --ctx 32 pb.h5)" \
	"$(of_layer q16.h5 /0/mlp/down_proj) $(ppl --ctx 32 both.h5)"
exmy-pack --unpack pb.h5 -o s.h5; ok '... and unpacked' h5diff --exclude-attribute / both.h5 s.h5
ok '16 bits: with a compute format' dpq-run -q --storage vq16 --group 16 --compute e4m3fn --act-mode dynamic-token \
	"$model" -o c.h5
rounded=$(ppl --ctx 32 c.h5)
ok '... it rounds weights' test -n "$rounded" -a "$rounded" != "$(ppl --ctx 32 q16.h5)"

printf '*/down_proj storage=vq8 group=16\n*/o_proj keep\n' >plan
dpq-run -q --compensate none --group 16 --plan plan "$model" -o plan.h5
storages() {
	tensor-stats --layers '*/0/*' "$1" | awk -F '\t' 'NR > 1 { sub(".*/", "", $1); print $1 "=" $2 }' | sort | xargs
}
is '--plan: formats of layers' "$(storages plan.h5)" \
	'all=- down_proj=vq8 gate_proj=uint4 k_proj=uint4 o_proj=f32 q_proj=uint4 up_proj=uint4 v_proj=uint4'
py plain plan.h5 plain.h5; same '--plan' plan.h5 plain.h5
blocks=$(($(wc -c <q.h5) * 2 / 3 / 512))
( ulimit -f $blocks; dpq-run -q --storage vq8 --group 16 --resume "$model" -o r.h5 ) 2>/dev/null
ok 'a stopped run leaves FILE.part' test -s r.h5.part -a ! -e r.h5
ok '... and can be resumed' dpq-run -q --storage vq8 --group 16 --resume "$model" -o r.h5
ok '--resume: the same model' h5diff q.h5 r.h5

dpq-run --storage vq8 --group 16 --damp 0.1 --compensate none "$model" -o idle.h5 2>idle.err
ok 'a warning names options without effect on a codebook' grep -q 'damp.*codebook' idle.err
no 'no grid: --act-format' 2 '--act-format: vq8 has no grid' dpq-run --storage vq8 --act-format vq8 "$model"
no 'no grid: --act-format of msq-calib' 2 '--act-format: vq8 has no grid' msq-calib --act-format vq8 "$model"
no 'no grid: --compute' 2 '--compute: vq8 has no grid' dpq-run --compute vq8 "$model"
no 'no grid: --kv-format' 2 '--kv-format: vq8 has no grid' eval-ppl --kv-format vq8 --tokens tokens.h5 --ctx 32 "$model"
no 'no grid: exmy-sweep' 2 '--formats: vq8 has no grid' exmy-sweep --formats int4,vq8
no 'no grid: awq-scale' 2 '--storage: vq8 has no grid' awq-scale --storage vq8 "$model"
no 'no grid: fbq-run' 2 '--storage: vq8 has no grid' fbq-run --storage vq8 "$model"
no 'no grid: branches' 2 '--branch-format: vq8 has no grid' fbq-run --branch-format vq8:16 "$model"
no 'tools without the format refuse its name' 2 "there is no format 'vq8'" "$usual/dpq-run" --storage vq8 "$model"
no '... also in a file' 1 "attribute storage 'vq8' is not a number format" "$usual/tensor-stats" q.h5
py faults
no 'an invalid code' 1 'codes: holds code 60, which is not valid in vq8' tensor-stats code.h5
no '... in packed codes' 1 'packed: holds code 63, which is not valid in vq8' tensor-stats word.h5
no '... of 16 bits' 1 'down_proj/codes: holds in row 3, at byte 4, a code that is not valid in vq16' \
	tensor-stats wide.h5
ok '... the last valid code is read' tensor-stats last.h5
no 'bits other than those of the format' 1 'attribute bits must be the width of the storage format, 16, not 8' \
	tensor-stats bits.h5
is '... the attribute bits may be absent' "$(of_layer nobits.h5 /0/mlp/down_proj)" "$(of_layer q16.h5 /0/mlp/down_proj)"
no 'two bytes per column, without columns' 1 'codes: attribute columns is missing' tensor-stats byte.h5
no 'rows that do not match the model' 1 'codes: attribute rows must be' ppl --ctx 32 rows.h5
no 'codes without their columns' 1 'codes: attribute columns is missing' tensor-stats columns.h5
no 'too few rows of codes' 1 'down_proj/codes' tensor-stats few.h5
no 'a compute format without a grid' 1 "attribute compute is 'vq8', which has no grid" tensor-stats compute.h5
no 'attribute columns where a code is one weight' 1 \
	'attribute columns is present, but a code of the storage format is' \
	tensor-stats single.h5
done_testing
