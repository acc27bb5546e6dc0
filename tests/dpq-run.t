#!/bin/sh
# dpq-run.t -- dpq-run on one layer and on a model: codes, scales, orders, activation formats; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5 other=$top/tests/ref/llama-tied.h5

py make "$model" "$other"
attr() { py attr "$@"; }
shape() { py shape "$@"; }
same() { py same "$@"; }

# one layer, with all kinds of options
dpq-run -q --compensate none --group 32 layer.h5 -o rtn.h5
is 'codes' "$(shape rtn.h5 a/codes)" '(24, 100) uint8'
is 'scales, with a short last group' "$(shape rtn.h5 a/scale)" '(24, 4) float32'
is 'zero points' "$(shape rtn.h5 a/zero)" '(24, 4) uint8'
is 'storage' "$(attr rtn.h5 a storage) $(attr rtn.h5 a group) $(attr rtn.h5 a bits)" 'uint4 32 4'
is 'the weight is replaced, other members are kept' "$(h5ls rtn.h5/a | cut -d' ' -f1 | xargs)" 'codes note scale zero'
for how in '--group 32' '--group channel' '--group tensor' '--storage int3 --group 32' '--storage uint8' \
	'--storage e4m3fn --group tensor' \
	'--group 32 --compute e4m3fn' '--group 32 --compute e4m3ieee --recipe inc' \
	'--group 32 --compute e4m3fn --recipe paper --scale8 channel' \
	'--group 32 --group-view block --scale-search mse' '--group 1000'; do
	# shellcheck disable=SC2086
	ok "dpq-run $how" dpq-run --hessian hess.h5 $how layer.h5 -o x.h5
done
for k in 1 4; do
	dpq-run -q --hessian hess.h5 --storage int3 --paths $k --report $k.report layer.h5 -o x.h5
done
ok '--paths: a smaller error' awk -F '\t' '$1 == "all" { e[FILENAME] = $2 }
	END { exit !(e["4.report"] > 0 && e["4.report"] < e["1.report"]) }' 1.report 4.report
echo '* paths=2' >paths.plan
ok '... in a plan' dpq-run --hessian hess.h5 --plan paths.plan layer.h5 -o y.h5
dpq-run -q --hessian hess.h5 --paths 2 layer.h5 -o x.h5
ok '... is that option' same x.h5 y.h5 a/codes a/scale
no '... no power of two' 2 '--paths: 3 is not a power of two, expected 1, 2, 4, 8 or 16' \
	dpq-run --hessian hess.h5 --paths 3 layer.h5
no '... too many' 2 '--paths' dpq-run --hessian hess.h5 --paths 32 layer.h5
warns '... without compensation' 'without effect here: --paths .--compensate none.' \
	dpq-run --compensate none --paths 2 layer.h5 -o x.h5
for k in 0 1 3; do
	dpq-run -q --hessian hess.h5 --storage int3 --group 32 --turns $k --report $k.report layer.h5 -o x.h5
done
ok '--turns: a smaller error' awk -F '\t' '$1 == "all" { e[FILENAME] = $2 }
	END { exit !(e["3.report"] > 0 && e["3.report"] <= e["1.report"] && e["1.report"] < e["0.report"]) }' \
	0.report 1.report 3.report
no '... of a tensor' 2 '--turns: finds scales of groups and channels, not of a tensor' \
	dpq-run --hessian hess.h5 --turns 1 --group tensor layer.h5
warns '... without compensation' 'without effect here: --turns .--compensate none.' \
	dpq-run --compensate none --turns 1 layer.h5 -o x.h5
gar-order --order full --group 32 hess.h5 -o full.h5; gar-order --group 32 hess.h5 -o gar.h5
dpq-run -q --hessian hess.h5 --order full.h5 --group 32 layer.h5 -o x.h5
is 'full order stores the group of each column' "$(shape x.h5 a/group_index)" '(100,) int32'
dpq-run -q --hessian hess.h5 --order full.h5 --group 32 --static-groups layer.h5 -o x.h5
is '... with static groups it does not' "$(h5ls x.h5/a | grep -c group_index)" 0
dpq-run -q --hessian hess.h5 --order gar.h5 --group 32 layer.h5 -o x.h5
is '... nor does gar' "$(h5ls x.h5/a | grep -c group_index)" 0
for search in minmax mse; do
	dpq-run -q --compensate none --scale-search $search --order full.h5 --group 32 layer.h5 -o z.h5
	py permuted full.h5 layer.h5 permuted.h5
	dpq-run -q --compensate none --scale-search $search --group 32 permuted.h5 -o y.h5
	ok "rounding to nearest ($search): the order sets the groups" py permuted_codes full.h5 z.h5 y.h5
done
warns '... a group-aware order leaves them' \
	'without effect here: --order .--compensate none and a group-aware order.$' \
	dpq-run --compensate none --order gar.h5 --group 32 layer.h5 -o y.h5
ok '... as they are' same y.h5 rtn.h5 a/codes
is 'the history of the order is kept' \
	"$(attr x.h5 / history:order | head -1)" "gar-order $(cat "$top/VERSION") --group 32"
cp gar.h5 bare.h5; py forget bare.h5
dpq-run -q --hessian hess.h5 --order bare.h5 --group 32 layer.h5 -o y.h5
is '... or, without a history, its digest' "$(attr y.h5 / history:order)" \
	"a file without a history, digest $(py digest bare.h5)"
dpq-run -q --hessian hess.h5 --order - --group 32 layer.h5 -o y.h5 <bare.h5
is '... that of a file on standard input' "$(attr y.h5 / history:order)" \
	"a file without a history, digest $(py digest bare.h5)"
cat bare.h5 | dpq-run -q --hessian hess.h5 --order - --group 32 layer.h5 -o y.h5
is '... but not of a pipe' "$(attr y.h5 / history:order)" 'a stream without a history'
ok 'other byte orders' dpq-run -q --compensate none --group 32 big-endian.h5 -o be.h5
ok '... give the same codes' same be.h5 rtn.h5 a/codes
ok 'chunked, compressed doubles' dpq-run -q --compensate none --group 32 chunked.h5 -o ch.h5
ok '... give the same codes' same ch.h5 rtn.h5 a/codes
dpq-run --hessian singular.h5 layer.h5 -o x.h5 2>report; ok 'a singular Hessian is damped' grep -q '^/a' report

gar-order --group channel hess.h5 -o channel.h5; gar-order --order full hess.h5 -o full.h5
ok 'with one scale per row gar is full order' same channel.h5 full.h5 a/order
dpq-run -q --hessian hess.h5 --order channel.h5 --group channel --storage e2m2 layer.h5 -o x.h5
is '... and no group is stored' "$(h5ls x.h5/a | cut -d' ' -f1 | xargs)" 'codes note scale'

# floats and quantiles: codes are compared with the nearest value of a list, in numpy
for f in e2m1 e1m3 e2m2 e3m1 e2m3 e3m3 e0m4 e1m6 nf3 nf4 nf5 int5; do
	for g in channel tensor 32; do
		dpq-run -q --compensate none --scale-search minmax --storage $f --group $g layer.h5 -o x.h5
		ok "$f, group $g: every code is the nearest, a row of zeros has scale 1 and stays zero" \
			py nearest x.h5 $f
	done
	ok "GPTQ with $f" dpq-run -q --hessian hess.h5 --order gar.h5 --group 32 --storage $f layer.h5 -o x.h5
	ok "DPQ with $f" \
		dpq-run -q --hessian hess.h5 --order gar.h5 --group 32 --storage $f --compute e4m3fn layer.h5 -o x.h5
done
codes() { py codes "$1"; }
q='-q --compensate none --scale-search minmax --group channel'
# shellcheck disable=SC2086
{
	dpq-run $q --storage e2m2 ties.h5 -o x.h5
	is 'ties to even: 4.5 to 4, 9 to 8, 13 to 12, 1/4 to 0' \
		"$(codes x.h5 | cut -d' ' -f1-8)" '15 8 12 14 24 28 30 0'
	dpq-run $q --storage e2m2 --ties away ties.h5 -o x.h5
	is 'ties away: to 5, 10, 14, 1/2' "$(codes x.h5 | cut -d' ' -f1-8)" '15 9 13 15 25 29 31 1'
	dpq-run $q --storage int4 ties.h5 -o x.h5
	is 'integers: to even' "$(codes x.h5 | cut -d' ' -f9-16)" '14 7 9 9 7 5 10 7'
	dpq-run $q --storage int4 --ties away ties.h5 -o x.h5
	is '... and away' "$(codes x.h5 | cut -d' ' -f9-16)" '14 8 9 10 6 5 10 7'
}

# scale types: codes and scales of FP4 equal those of numpy's types (tests/ref/fp4.py), all types follow their
# definitions
fp4=$top/tests/ref/fp4.h5
for k in mx nv; do
	dpq-run -q --compensate none --scale-search minmax --storage ${k}fp4 "$fp4" -o x.h5
	ok "${k}fp4: codes and scales of the standard" py fp4 x.h5 "$fp4" $k
done
for f in int4 uint4 e2m1; do
	for t in bf16 f16 e8m0 e4m3fn; do
		for g in 32 channel tensor; do
			dpq-run -q --compensate none --scale-search minmax --storage $f --scale-dtype $t \
				--group $g layer.h5 -o x-$f-$t-$g.h5
		done
	done
done
dpq-run -q --compensate none --scale-search minmax --storage nvfp4 --group 20 layer.h5 -o x-nvfp4-e4m3fn-20.h5
for b in uint4:f16:7 uint4:bf16:6 int4:f32:7 int4:f32:1 e2m1:f16:5 int4:f16:3 int4:e4m3fn:2 nvfp4:e4m3fn:1; do
	f=${b%%:*} t=${b#*:}
	dpq-run -q --compensate none --scale-search minmax --storage $f --scale-dtype ${t%:*} --scale-bits ${t#*:} \
		--group 32 layer.h5 -o x-$f-$t-32.h5 2>x.err
done
is 'formats with scales of four types and of few bits, per group, channel and tensor' \
	"$(find . -name 'x-*.h5' | wc -l)" 45
ok '... each scale is the nearest number of its type' py scales x-*.h5
is 'f32 is the default type of scales' \
	"$(dpq-run -q --compensate none --group 32 --scale-dtype f32 layer.h5 -o x.h5; h5diff x.h5 rtn.h5 /a &&
	echo same)" same
dpq-run -q --compensate none --scale-dtype bf16 layer.h5 -o x.h5
is '--scale-dtype in the history' \
	"$(attr x.h5 / history | head -1)" "dpq-run $(cat "$top/VERSION") --scale-dtype bf16 --compensate none"
for s in mse hessian; do
	dpq-run -q --hessian hess.h5 --scale-search $s --storage uint4 --group 32 --scale-dtype f16 --scale-bits 7 \
		layer.h5 -o few.h5
	ok "--scale-bits 7 --scale-search $s: a zero point times a scale is a number of f16" py products_fit few.h5
done
printf '* scale-dtype=f16 scale-bits=7\n' >few.plan
dpq-run -q --compensate none --plan few.plan layer.h5 -o few.h5
dpq-run -q --compensate none --scale-dtype f16 --scale-bits 7 layer.h5 -o x.h5
ok '... by a plan' same few.h5 x.h5 a/scale
dpq-run -q --compensate none --scale-dtype f16 layer.h5 -o y.h5
for b in 11 24; do
	warns "--scale-bits $b of f16" '--scale-bits .scales have no more' \
		dpq-run --compensate none --scale-dtype f16 --scale-bits $b layer.h5 -o x.h5
	ok '... changes nothing' same x.h5 y.h5 a/scale
done
bits() { tensor-stats -q "$1" 2>/dev/null | awk '$1 == "/a" { print $7 }'; }
dpq-run -q --compensate none --storage mxfp4 --group 20 layer.h5 -o x.h5
is 'bits per weight include scales at their width' "$(bits x.h5)" 4.4
gar-order --group 32 hess.h5 -o gar32.h5; gar-order --group 16 hess.h5 -o gar16.h5
for s in mxfp4:32 nvfp4:16; do
	ok "GPTQ with ${s%:*}, whose group is ${s#*:}" \
		dpq-run -q --hessian hess.h5 --order gar"${s#*:}".h5 --storage "${s%:*}" layer.h5 -o x.h5
	ok "DPQ over ${s%:*}" dpq-run -q --hessian hess.h5 --order gar"${s#*:}".h5 --storage "${s%:*}" \
		--compute e4m3fn layer.h5 -o x.h5
done
dpq-run -q --hessian hess.h5 --scale-search minmax --storage mxfp4 layer.h5 -o x.h5
dpq-run -q --hessian hess.h5 --scale-search minmax --storage mxfp4 --compute e4m3fn layer.h5 -o y.h5
ok 'FP4 with power-of-two scales is exact in FP8: DPQ and GPTQ choose the same codes' same x.h5 y.h5 a/codes
dpq-run -q --hessian hess.h5 --storage e2m1 --scale-dtype e8m0 --group 32 layer.h5 -o x.h5
dpq-run -q --hessian hess.h5 --storage mxfp4 layer.h5 -o y.h5
ok 'e2m1 with power-of-two scales is mxfp4' same x.h5 y.h5 a/codes
# integer scales in units of the scale of the row: weights are integers, and the second rounding changes none of them
serve='--compute int8 --scale8 channel --pow2-scale no --act-mode dynamic-token --group 32'
for s in minmax mse hessian; do
	# shellcheck disable=SC2086
	dpq-run -q --hessian hess.h5 --compensate none --scale-search $s --scale-dtype u8 --top 119 --saturate 127 \
		--round-first yes $serve layer.h5 -o x.h5
	ok "integer scales by $s" py integer_scales x.h5 119
done
# shellcheck disable=SC2086
ok 'DPQ with integer scales' dpq-run -q --hessian hess.h5 --scale-dtype u8 $serve layer.h5 -o y.h5
ok '... whose weights are integers, which may saturate' py integer_scales y.h5 127 saturated
is '... a scale has 8 bits, that of a row 32' "$(bits y.h5)" 4.8
exmy-pack -q x.h5 -o z.h5
ok '... packed and unpacked' sh -c 'exmy-pack -q --unpack z.h5 -o w.h5 && h5diff w.h5 x.h5 /a'
printf '* storage=nvfp4\n/a scale-dtype=e4m3fn group=10\n' >scales.plan
warns 'a plan with the scale type that the storage format has' 'scale-dtype' \
	dpq-run --compensate none --plan scales.plan layer.h5 -o x.h5
is '... applies to the layer' "$(attr x.h5 a storage) $(attr x.h5 a group) $(attr x.h5 a scale_dtype)" 'nvfp4 10 e4m3fn'
warns '... a command line with it' '--scale-dtype .a storage with its own.' \
	dpq-run --compensate none --storage mxfp4 --scale-dtype e8m0 layer.h5 -o x.h5

# the format of activations is separate from that of weights
act() { py act "$1"; }
scale() { py act_scale "$@"; }
q='-q --hessian hess.h5 --group 32'
# shellcheck disable=SC2086
{
	dpq-run $q --act-format int8 layer.h5 -o x.h5
	is 'int8 activations of a weight-only layer' \
		"$(act x.h5) $(attr x.h5 a compute)" "int8 static-tensor $(scale 127) none"
	dpq-run $q --act-format e2m3 --storage e2m2 layer.h5 -o x.h5
	is 'activations in a small float' "$(act x.h5)" "e2m3 static-tensor $(scale 15)"
	dpq-run $q --act-format int8 --pow2-scale yes layer.h5 -o x.h5
	is '--pow2-scale: the scale is a power of two' "$(act x.h5)" "int8 static-tensor $(scale 127 2)"
	dpq-run $q --act-format int8 --compute e4m3fn layer.h5 -o x.h5
	is 'activations in another format than the product' \
		"$(act x.h5) $(attr x.h5 a compute)" "int8 static-tensor $(scale 127) e4m3fn"
	dpq-run $q --compute e4m3fn layer.h5 -o x.h5
	is 'activations in the format of the product, with a power-of-two scale' "$(act x.h5)" \
		"e4m3fn static-tensor $(scale 448 2)"
	dpq-run $q --compute e4m3fn --act-format e4m3fn layer.h5 -o y.h5
	ok '... named or not' same x.h5 y.h5 a/act_scale
}
dpq-run -q --compensate none --act-format e3m4 --act-mode dynamic-token layer.h5 -o x.h5
is 'dynamic scales per token need no calibration' "$(act x.h5)" 'e3m4 dynamic-token'
dpq-run -q --compensate none --storage e2m2 act.h5 -o x.h5
is 'the activation format of the model is kept' "$(act x.h5)" 'int8 static-tensor 0.25'
dpq-run -q --compensate none --act-mode none act.h5 -o x.h5
is '... --act-mode none removes it' "$(act x.h5)" 'None None'
dpq-run -q --compensate none --compute e4m3fn --act-mode none act.h5 -o x.h5
is '... also with FP8 products' "$(act x.h5)" 'None None'

# scales by the output error: less error than mse, the same for any number of threads and without a report
error() { dpq-run --hessian hess.h5 "$@" layer.h5 -o x.h5 2>&1 | awk '$1 == "/a" { print $2 }'; }
less() { awk -v a="$1" -v b="$2" -v more="${3:-1}" 'BEGIN { exit !(a > 0 && a < b * more) }'; }
for f in uint3 int3 e2m1 nf4 nvfp4 mxfp4; do
	# scales of mxfp4 and nvfp4 are too coarse to improve on mse: the error is not larger
	more=1; case $f in ??fp4) more=1.00001 ;; esac
	ok "hessian, $f, group channel: less error than mse" less \
		"$(error --storage $f --group channel --compensate none --scale-search hessian)" \
		"$(error --storage $f --group channel --compensate none --scale-search mse)" $more
	ok "learned, $f, round-to-nearest: less error than minmax" less \
		"$(error --storage $f --group 32 --compensate none --scale-search learned)" \
		"$(error --storage $f --group 32 --compensate none --scale-search minmax)"
done
for s in hessian learned; do
	for how in '--group 32' '--group channel' '--group 32 --compensate none' \
		'--group 32 --compute e4m3fn --recipe paper' '--group 32 --order full.h5 --static-groups' \
		'--group 32 --storage e2m1 --scale-dtype bf16 --group-view block'; do
		# shellcheck disable=SC2086
		{
			dpq-run -j1 --hessian hess.h5 $how --scale-search $s layer.h5 2>/dev/null -o one.h5
			dpq-run -j3 -q --hessian hess.h5 $how --scale-search $s layer.h5 -o three.h5
		}
		ok "--scale-search $s $how: the same with 1 and 3 threads" h5diff one.h5 three.h5 /a
	done
done
printf '* scale-search=learned\n' >search.plan
dpq-run -q --hessian hess.h5 --plan search.plan --group 32 layer.h5 -o x.h5
dpq-run -q --hessian hess.h5 --scale-search learned --group 32 layer.h5 -o y.h5
ok '--scale-search in a plan' h5diff x.h5 y.h5 /a

# a model, through pipes and files, twice, on one thread and on three
w='--ctx 50 --convention bos'
# shellcheck disable=SC2086
{
	hessian-accum --tokens tokens.h5 $w "$model" -o mh.h5
	gar-order --group 16 < mh.h5 > mo.h5
	q="-q --hessian mh.h5 --order mo.h5 --group 16 --compute e4m3fn"
	dpq-run $q "$model" -o file.h5
	eval-ppl --tokens tokens.h5 $w file.h5 > through-file
	dpq-run $q < "$model" | eval-ppl --tokens tokens.h5 $w > through-pipe
	cat "$model" | dpq-run $q | cat | eval-ppl --tokens tokens.h5 $w > through-cat
	dpq-run $q -j 1 "$model" -o one.h5; dpq-run $q -j 3 "$model" -o three.h5
	dpq-run $q "$model" | cat > stream1; dpq-run $q "$model" | cat > stream2
	hessian-accum --tokens tokens.h5 $w -j 3 "$model" -o mh3.h5
}
ok 'a pipe and files give the same result' cmp through-file through-pipe
ok '... also through cat' cmp through-file through-cat
ok 'the same bytes on one thread and on three' cmp one.h5 three.h5
ok '... and in two runs' cmp file.h5 one.h5
ok '... also of streams' cmp stream1 stream2
ok 'Hessians do not depend on the threads' cmp mh.h5 mh3.h5
ok 'a stream in a file is read' eval-ppl --tokens tokens.h5 $w stream1
ok 'h5py reads it' py readable
ok 'h5dump reads it' h5dump -H file.h5
# --reorder: every member equals the result with a file of gar-order; a line of a plan can have another group
history() { py arguments "$1"; }
for how in none:5 full:16 full:channel gar:5 gar:16 gar:channel gar:tensor gar:8:mean; do
	o=${how%%:*} g=$(echo "$how" | cut -d: -f2) key=$(echo "$how" | cut -sd: -f3)
	# shellcheck disable=SC2086
	{
		gar-order -q --order "$o" --group "$g" ${key:+--key $key} mh.h5 -o ro.h5
		dpq-run -q --hessian mh.h5 --order ro.h5 --group "$g" "$model" -o file.h5
		dpq-run -q --hessian mh.h5 --reorder "$o" ${key:+--key $key} --group "$g" "$model" -o own.h5
	}
	is "--reorder $o${key:+, by $key}, group $g" "$(py alike own.h5 file.h5)" 14
done
echo '*/down_proj group=8' >order.plan
dpq-run -q --hessian mh.h5 --reorder gar --plan order.plan --group 16 "$model" -o own.h5
gar-order -q --group 8 mh.h5 -o ro.h5
dpq-run -q --hessian mh.h5 --order ro.h5 --group 8 --layers '*/down_proj' "$model" -o down.h5
dpq-run -q --hessian mh.h5 --order mo.h5 --group 16 --layers '!*/down_proj' down.h5 -o file.h5
is '... with the group of a line of the plan' "$(py alike own.h5 file.h5)" 14
# gar is the default order, and the history has it; without compensation there is no order, and no message of one
for how in '--group 16' '--plan order.plan --group 16' '--group channel'; do
	# shellcheck disable=SC2086
	{
		dpq-run -q --hessian mh.h5 $how "$model" -o file.h5
		dpq-run -q --hessian mh.h5 --reorder gar $how "$model" -o own.h5
	}
	is "gar is the default: $how" "$(py alike own.h5 file.h5) $(history file.h5)" "14 $(history own.h5)"
done
is '... with one scale per row no groups are stored' "$(h5ls -r file.h5 | grep -c group_index)" 0
is '... the history has the order' "$(history file.h5)" '--reorder gar --group channel'
# shellcheck disable=SC2086
dpq-run -q --sequential --tokens tokens.h5 $w --group 16 "$model" -o file.h5
is '... also with --sequential' "$(history file.h5 | cut -d' ' -f1-4)" '--reorder gar --group 16'
dpq-run --compensate none --group 16 --hessian mh.h5 "$model" -o file.h5 2>said
is '... not without compensation' \
	"$(history file.h5) $(grep -c 'effect\|--reorder' said)" '--group 16 --compensate none 0'
dpq-run -q --hessian mh.h5 --order mo.h5 --group 16 "$model" -o file.h5
is '... nor with --order' "$(history file.h5)" '--group 16'
no '--order with --reorder' 2 '.-order FILE cannot be combined with --reorder or --key' \
	dpq-run --hessian mh.h5 --order mo.h5 --reorder full --group 16 "$model" -o bad.h5
no '... or with --key' 2 '.-order FILE cannot be combined with --reorder or --key' \
	dpq-run --hessian mh.h5 --order mo.h5 --key sum --group 16 "$model" -o bad.h5
# Ŵ includes the division by the divisor of the tensor: a plain model of the same weights computes the same
for s in mxfp4 nvfp4; do
	dpq-run -q --hessian mh.h5 --storage $s "$model" -o $s.h5; py plain $s.h5 plain.h5
	# shellcheck disable=SC2086
	is "$s: a plain model of the same weights computes the same" \
		"$(eval-ppl --tokens tokens.h5 $w $s.h5)" "$(eval-ppl --tokens tokens.h5 $w plain.h5)"
	# shellcheck disable=SC2086
	{
		dpq-run -q --sequential --tokens tokens.h5 $w --reorder gar --storage $s "$model" -o seq.h5
		py plain seq.h5 plain.h5
		is "... --sequential" \
			"$(eval-ppl --tokens tokens.h5 $w seq.h5)" "$(eval-ppl --tokens tokens.h5 $w plain.h5)"
	}
done
# E1M3 with the scale max/3.75 is int5: every code of every layer, with any compensation
model-import -q "$top/data/prose" -o prose.h5
for f in e1m3 int5; do
	dpq-run -q --compensate none --scale-search minmax --group channel --storage $f prose.h5 -o rtn-$f.h5
	dpq-run -q --hessian mh.h5 --order mo.h5 --group 16 --storage $f "$model" -o gptq-$f.h5
	dpq-run -q --hessian mh.h5 --order mo.h5 --group 16 --storage $f --compute e4m3fn "$model" -o dpq-$f.h5
done
is 'E1M3 is int5 in every code of the embedded model' \
	"$(py mapped rtn-e1m3.h5 rtn-int5.h5)" "$(h5ls -r prose.h5 | grep -c '_proj/weight')"
ok '... by GPTQ with a scale search' py mapped gptq-e1m3.h5 gptq-int5.h5
ok '... by DPQ' py mapped dpq-e1m3.h5 dpq-int5.h5
# shellcheck disable=SC2086
nll() { dpq-run -q --hessian mh.h5 "$@" "$model" | eval-ppl --tokens tokens.h5 $w | awk '$1 == "nll" { print $2 }'; }
q='--storage int8 --group channel' plain=$(nll --storage int8 --group channel)
# shellcheck disable=SC2086
# int8 and e1m6 have the same values, their scales differ by a power of two: every number is rounded to the same
for mode in static-tensor dynamic-token; do
	ok "activations in int8 and in e1m6, which is int8, $mode: the same, near the unrounded model" \
		awk -v p="$plain" -v a="$(nll $q --act-mode $mode --act-format int8)" \
		-v b="$(nll $q --act-mode $mode --act-format e1m6)" \
		-v c="$(nll $q --act-mode $mode --act-format e2m1)" \
		'BEGIN { exit !(a != p && a == b && (a - p) ^ 2 < (c - p) ^ 2) }'
done

dpq-run -q --compensate none --layers '*/q_proj' --layers '!*/1/*' "$model" -o x.h5
is '--layers' "$(h5ls -r x.h5 | grep -c codes)" 1
warns '... a pattern that matches nothing' "--layers '!\\*/9/\\*' matches no layer" \
	dpq-run --compensate none --layers '*/q_proj' --layers '!*/9/*' "$model" -o x.h5
model-import -q "$top/data/prose" -o tied.h5
for tied in tied.h5 -; do
	warns "an embedding whose weight the output layer shares: $tied" \
		'/model/embed_tokens is quantized; the output layer, which shares its weight, keeps it' \
		sh -c 'cat tied.h5 | dpq-run --compensate none --group 8 --layers "*/embed_tokens" $1 -o x.h5' sh $tied
done
warns '--key with one group per row' 'without effect here: --key \(one group per row\)' \
	dpq-run --key mean --group channel --hessian mh.h5 "$model" -o x.h5
dpq-run -q --compensate none --group 1024 "$model" -o x.h5
dpq-run -q --compensate none --group 1K "$model" -o y.h5
ok '--group with a suffix, in one form in the history' cmp x.h5 y.h5

# errors: one line, and no file is left
run() { dpq-run -q "$@" -o bad.h5; }
no 'no Hessian' 2 '--hessian FILE is needed' run layer.h5
no 'a missing file' 1 'nothing.h5: cannot open: No such file' run --hessian nothing.h5 layer.h5
no 'a Hessian of other widths' 1 'small.h5: /a/hessian: has shape \[50, 50\], expected \[100, 100\]' \
	run --hessian small.h5 layer.h5
no 'the Hessian of another model' 1 "hess.h5: /model/layers/0/.*is missing" run --hessian hess.h5 "$model"
no 'a Hessian of no tokens' 1 'count: is not positive' run --hessian none-seen.h5 layer.h5
no 'NaN in the Hessian' 1 'nan-hess.h5: /a/hessian' run --hessian nan-hess.h5 layer.h5
no 'infinity in the Hessian' 1 'inf-hess.h5: /a/hessian' run --hessian inf-hess.h5 layer.h5
no 'an indefinite Hessian' 1 'indefinite.h5: /a/hessian' run --hessian indefinite.h5 layer.h5
for s in hessian learned; do
	no "scale search $s of a tensor" 2 "scale-search $s: finds scales of groups and channels, not of a tensor" \
		run --hessian hess.h5 --scale-search $s --group tensor layer.h5
	no "scale search $s without a Hessian" 2 "scale-search $s needs --hessian FILE" \
		run --compensate none --scale-search $s layer.h5
done
printf '/a group=tensor\n' >tensor.plan
no '... of a tensor by a plan' 2 'not of a tensor' \
	run --hessian hess.h5 --scale-search hessian --plan tensor.plan layer.h5
no 'scale search learned on NaN in the Hessian' 1 'nan-hess.h5: /a/hessian' \
	run --compensate none --scale-search learned --hessian nan-hess.h5 layer.h5
no 'NaN in absmax' 1 'absmax.h5: /a/absmax' run --hessian absmax.h5 --compute e4m3fn layer.h5
no 'NaN in a weight' 1 'nan.h5: /a/weight' run --hessian hess.h5 nan.h5
no 'infinity in a weight' 1 'inf.h5: /a/weight' run --compensate none inf.h5
no 'NaN, quantized to a small float' 1 'nan.h5: /a/weight: holds infinite or undefined' \
	run --hessian hess.h5 --storage e2m2 --group channel nan.h5
no 'infinity, quantized to a small float' 1 'inf.h5: /a/weight: holds infinite or undefined' \
	run --compensate none --storage e2m2 --group channel inf.h5
no 'infinity, quantized to quantiles' 1 'inf.h5: /a/weight: holds infinite or undefined' \
	run --compensate none --storage nf4 --group tensor inf.h5
no 'an activation format with a zero point' 2 'act-format: uint8 has a zero point' \
	run --hessian hess.h5 --act-format uint8 layer.h5
no 'a compute format with a zero point' 2 'compute: uint8 has a zero point' \
	run --hessian hess.h5 --compute uint8 layer.h5
no 'an activation mode without a format' 2 'act-mode needs a format' \
	run --hessian hess.h5 --act-mode dynamic-token layer.h5
warns 'activation scales that --compute replaces' \
	'act.h5: /a: specifies a rounding of inputs, which --compute e4m3fn replaces' dpq-run --hessian hess.h5 \
	--compute e4m3fn act.h5 -o replaced.h5
warns 'an activation format without a mode' '--act-format .--act-mode none.' \
	dpq-run --hessian hess.h5 --act-mode none --act-format int8 layer.h5 -o noact.h5
no 'static scales without calibration' 2 'need --hessian' run --compensate none --act-format int8 layer.h5
no 'an unknown activation format' 2 "act-format: there is no format 'int9'" \
	run --hessian hess.h5 --act-format int9 layer.h5
no 'an unknown scale type' 2 "scale-dtype: 'fp8' is not one of f32, bf16, f16, e8m0, e4m3fn, u8" \
	run --compensate none --scale-dtype fp8 layer.h5
no 'integer scales without a unit' 2 'scale-dtype: scales in u8 multiply the second scale of a layer' \
	run --compensate none --scale-dtype u8 layer.h5
no 'a scale type that the storage format does not have' 2 'scale-dtype: mxfp4 has scales in e8m0, not in f32; e2m1' \
	run --compensate none --storage mxfp4 --scale-dtype f32 layer.h5
no 'an activation format with scales of groups' 2 'act-format: mxfp4 has scales of groups' \
	run --hessian hess.h5 --act-format mxfp4 layer.h5
no 'a compute format with scales of groups' 2 'compute: nvfp4 has scales of groups' \
	run --hessian hess.h5 --compute nvfp4 layer.h5
no 'an order of another group than mxfp4 has' 1 'gar16.h5: was made with --group 16, this has --group 32' \
	run --hessian hess.h5 --order gar16.h5 --storage mxfp4 layer.h5
no 'an integer weight' 1 'int.h5: /a/weight' run --compensate none int.h5
no 'no linear layer' 1 'no-layer.h5: holds no linear layer' run --compensate none no-layer.h5
no 'a file without a kind' 1 "kind.h5: has no attribute ptq_kind, expected 'model'" run --compensate none kind.h5
no 'an unknown version' 1 "ptq_version '2'" run --compensate none version.h5
no 'an external link' 1 'external.h5: /a/weight: is a soft or external link' run --compensate none external.h5
no 'an order that is damaged' 1 'order-bad.h5: /a/order' run --hessian hess.h5 --order order-bad.h5 layer.h5
no 'an order of another width' 1 'order-short.h5: /a/order: has shape' \
	run --hessian hess.h5 --order order-short.h5 layer.h5
no 'another group than the order has' 1 'gar.h5: was made with --group 32, this has --group 128' \
	run --hessian hess.h5 --order gar.h5 layer.h5
no 'a quantized layer' 1 'is quantized already' run --compensate none rtn.h5
# one line: the error comes before any layer is quantized
dpq-run -q --compensate none --group 8 --layers '*/1/*' "$model" -o later.h5
no '... in a later block' 1 \
	'later.h5: /model/layers/1/self_attn/q_proj: is quantized already, expected a plain weight' \
	dpq-run --compensate none --group 8 later.h5 -o x.h5
py no_absmax
no 'a static scale where a later layer has no absmax' 1 \
	'no-absmax.h5: /model/layers/1/mlp/down_proj/absmax: is missing' dpq-run --hessian no-absmax.h5 --group 16 \
	--act-format int8 --act-mode static-tensor "$model" -o x.h5
no 'an unknown format' 2 "no format 'int9'" run --compensate none --storage int9 layer.h5
no 'an unknown group' 2 "neither a number of columns" run --compensate none --group x layer.h5
no 'a file of another kind' 1 "'tokens', expected 'model'" run --compensate none tokens.h5
size=$(stat -c %s stream1)
head -c $((size / 2)) stream1 > half-stream
no 'a stream cut in the middle' 1 "half-stream: is cut short" eval-ppl --tokens tokens.h5 --ctx 50 half-stream
head -c 5000 "$model" > cutfile; no 'a file cut short' 1 'cutfile: is cut short' run --compensate none cutfile
head -c 3000 /dev/urandom > junk; no 'random bytes' 1 'junk: is not an HDF5' run --compensate none junk
no 'a full disk' 1 'No space left' sh -c "dpq-run -q --compensate none '$model' > /dev/full"
# shellcheck disable=SC2016
no 'a full file system' 1 'cannot write|No space left' \
	sh -c 'ulimit -f 20; trap "" XFSZ; dpq-run -q --compensate none "$1" -o bad.h5' sh "$model"
no 'a directory as output' 1 'is a folder' dpq-run -q --compensate none layer.h5 -o .
is 'no result and no temporary file is left' "$(find . -name bad.h5 -o -name ".ptq*")" ""
done_testing
