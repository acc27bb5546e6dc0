#!/bin/sh
# basis.t -- attribute basis: it changes in a filter if and only if the inputs of layers change
# Inputs of layers are compared by the Hessians of the same tokens. Files of models with different bases are refused.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
basis_of() { py basis "$1"; }

# The reference models have no basis: one is set.
for name in llama-gqa gpt2; do
	py own_tokens "$ref/$name.h5" "$name.h5"
	sample-tokens -q --length 640 --ctx 32 "$name.h5" -o "$name-t.h5"
	hessian-accum -q --tokens "$name-t.h5" --ctx 32 "$name.h5" -o "$name-h.h5"
done

# --- every filter of models: its effect on the inputs of layers and on the basis ---

# NAME|model|filter|filter that it is compared with, or cat|other or same: whether the layers have other inputs
awq='awq-scale --hessian h.h5' rtn='dpq-run --compensate none'
cat >filters <<END
ln2rms|gpt2|ln2rms|cat|other
ln2rms-dtype|gpt2|ln2rms --dtype bf16|ln2rms|same
hadamard-rotate|llama-gqa|hadamard-rotate|cat|other
hadamard-rotate-seed|llama-gqa|hadamard-rotate --seed 1|hadamard-rotate|other
hadamard-rotate-0|llama-gqa|hadamard-rotate --seed 0|hadamard-rotate|same
hadamard-rotate-block|llama-gqa|hadamard-rotate --block 4|hadamard-rotate|other
hadamard-rotate-offline|llama-gqa|hadamard-rotate --offline|hadamard-rotate|other
hadamard-rotate-keys|llama-gqa|hadamard-rotate --keys|hadamard-rotate|same
hadamard-rotate-dtype|llama-gqa|hadamard-rotate --dtype f16 --check|hadamard-rotate|same
hadamard-rotate-load|llama-gqa|hadamard-rotate --load q1.h5|cat|other
hadamard-rotate-load2|llama-gqa|hadamard-rotate --load q1.h5|hadamard-rotate --load q2.h5|other
smooth-scale|llama-gqa|smooth-scale --hessian h.h5|cat|other
smooth-scale-alpha|llama-gqa|smooth-scale --hessian h.h5 --alpha 0.9|smooth-scale --hessian h.h5|other
smooth-scale-0.5|llama-gqa|smooth-scale --hessian h.h5 --alpha 0.50|smooth-scale --hessian h.h5|same
smooth-scale-hessian|llama-gqa|smooth-scale --hessian other.h5|smooth-scale --hessian h.h5|other
awq-scale|llama-gqa|$awq --storage int3 --group 8|cat|other
awq-scale-clip|llama-gqa|$awq --storage int8 --group 8 --clip no|$awq --storage int8 --group 8|same
awq-scale-storage|llama-gqa|$awq --storage int2 --group channel|$awq --storage int3 --group 8|other
qep-correct|llama-gqa|qep-correct --hessian c.h5|cat|same
rms-suppress|llama-gqa|hadamard-rotate \| rms-suppress|hadamard-rotate|same
dpq-run|llama-gqa|dpq-run --compensate none --storage int8 --group 8|cat|same
fbq-run|llama-gqa|fbq-run --method svdquant --storage int8 --group 8 --rank 2|cat|same
msq-calib|llama-gqa|msq-calib --act-format int8 --act-mode dynamic-token|cat|same
exmy-pack|llama-gqa|$rtn --storage int8 --group 8 \| exmy-pack|$rtn --storage int8 --group 8|same
tensor-join|llama-gqa|tensor-join|cat|same
END
py quantized
ln -s llama-gqa-h.h5 h.h5
hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 --limit 40 llama-gqa.h5 -o other.h5
dpq-run -q --compensate none --storage int8 --group 8 llama-gqa.h5 -o int8.h5
hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 --pair llama-gqa.h5 int8.h5 -o c.h5
# Rounding to 8 bits changes a Hessian by about 2^-6 of its norm, rounding to 16 bits by less; another basis changes
# almost all of it.
listed=$(for f in "$top"/bin/*.c; do
	grep -Eq 'rewrite_open\(|"model", (c->output|c\.output), "model"|output_open\(c\.output, "model"\)' "$f" &&
		basename "$f" .c
done | grep -v '^model-import$' | sort | tr '\n' ' ')
is 'every filter of models is in the list' "$(cut -d'|' -f1 filters | sort | while read -r name; do
	while [ ! -e "$top/bin/$name.c" ]; do name=${name%-*}; done
	echo "$name"
done | sort -u | tr '\n' ' ')" "$listed"
sed 's/\\|/@/g' filters >rows
while IFS='|' read -r name model filter with wanted; do
	for side in 1 2; do
		[ $side = 1 ] || filter=$with
		filter=$(printf '%s' "$filter" | tr '@' '|')
		sh -c "cat $model.h5 | $filter" >side.$side 2>err.$side || cat err.$side >&2
		cat side.$side | hessian-accum -q --tokens "$model-t.h5" --ctx 32 -o h.$side 2>>err.$side
	done
	both=$(py moved h.1 h.2)
	is "$name: basis, and inputs of layers (${both##* })" "${both% *}" "$wanted $wanted"
done <rows

# --- model-import: a digest of the checkpoint ---

for folder in tests/tiny data/prose; do
	model-import -q "$top/$folder" -o "$(basename $folder).h5"
	is "$folder: the digest that docs/format.md defines" "$(basis_of "$(basename $folder).h5")" \
		"$(py digest "$top/$folder")"
done
model-import -q "$top/tests/tiny" | cat >stream
is 'a stream stores it in part 0' "$(basis_of stream)" "$(basis_of tiny.h5)"
cp -r "$top/tests/tiny" changed && chmod -R u+w changed
py change_a_bit
model-import -q changed -o changed.h5
ok 'another weight, another basis' [ "$(basis_of changed.h5)" != "$(basis_of tiny.h5)" ]

# --- --basis: models that another program quantized ---

fresh() { rm -rf theirs; cp -r "$top/tests/tiny" theirs; chmod -R u+w theirs; py change_weights theirs "$@"; }
fresh round 0.1
sed -i 's/^{/{"torch_dtype": "float64", /' theirs/config.json
ok 'model-import --basis' sh -c 'model-import --basis tiny.h5 theirs -o theirs.h5 2>table'
is '... sets the basis of the given model' "$(basis_of theirs.h5)" "$(basis_of tiny.h5)"
is '... prints the relative difference of each layer' "$(awk '/^.model/ && $2 > 0 && $2 < 0.5' table | wc -l)" \
	"$(h5ls -r tiny.h5 | grep -c 'weight *Dataset {[0-9]*, ')"
sample-tokens -q --length 256 --ctx 32 tiny.h5 -o tiny-t.h5
hessian-accum -q --tokens tiny-t.h5 --ctx 32 tiny.h5 -o tiny-h.h5
ok '... so Hessians of the given model fit' dpq-run --hessian tiny-h.h5 --group 8 theirs.h5 -o x.h5
fresh round 0.1
sed -i 's/"rms_norm_eps": [^,]*/"rms_norm_eps": 0.5/' theirs/config.json
no 'another configuration' 1 "theirs/config.json: 'rms_norm_eps': differs from that of tiny.h5" \
	model-import -q --basis tiny.h5 theirs -o x.h5
fresh scale 2
no 'weights of another model' 1 'its relative difference from that of tiny.h5 is 1, expected less than 0.5' \
	model-import -q --basis tiny.h5 theirs -o x.h5
fresh gains 1.1
no 'scaled gains of norms' 1 \
	'norm.weight: its relative difference from that of tiny.h5 is 0.1[0-9]*, expected less than 0.00781' \
	model-import -q --basis tiny.h5 theirs -o x.h5
no 'other tensors' 1 'has no /model/layers/2/.*, which prose.h5 has: expected a quantized form of that model' \
	model-import -q --basis prose.h5 "$top/tests/tiny" -o x.h5
no 'a model without a basis' 1 'attribute basis: is missing' \
	model-import -q --basis "$ref/llama-gqa.h5" "$top/tests/tiny" -o x.h5

# --- files of different models ---

for i in 1 2; do
	hadamard-rotate -q --seed $i llama-gqa.h5 -o r$i.h5
	hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 r$i.h5 -o h$i.h5
	gar-order --group 8 h$i.h5 -o o$i.h5
done
hadamard-rotate -q --offline llama-gqa.h5 -o ro.h5
dpq-run -q --compensate none --group 8 llama-gqa.h5 -o qn.h5
for i in 1 2; do cat r$i.h5 | dpq-run -q --compensate none --group 8 --shard $i/2 >a$i.h5; done
for i in 1 2; do
	dpq-run -q --compensate none --group 8 r$i.h5 -o b$i.h5
	plan-bits -q -r r$i.h5 --tokens llama-gqa-t.h5 --ctx 32 --target-bits 64 b$i.h5 -o c$i.h5 >plan
done
ok 'KL of plan-bits for the same model' plan-bits -q -r r1.h5 --costs c1.h5 --target-bits 64 b1.h5
cat >mixtures <<'END'
plan-bits --costs c2.h5 --target-bits 64 -r r1.h5 b1.h5
dpq-run --hessian h2.h5 --group 8 r1.h5
dpq-run --order o2.h5 --hessian h1.h5 --group 8 r1.h5
fbq-run --hessian h2.h5 --group 8 --method caldera --rank 2 --steps 1 r1.h5
fbq-run --method lowrank --reference ro.h5 --rank 2 qn.h5
smooth-scale --hessian h2.h5 r1.h5
awq-scale --hessian h2.h5 --group 8 r1.h5
tensor-diff --hessian h2.h5 -r r1.h5 r1.h5
tensor-diff --hessian h2.h5 -r r1.h5 r2.h5
hessian-accum h1.h5 h2.h5
tensor-join a1.h5 a2.h5
END
rm -f x.h5
while read -r command; do
	# shellcheck disable=SC2086
	no "$command" 1 \
		"its layers have other inputs than those of [a-z0-9]*.h5 \(attribute basis\): .* \
was made by '.*hadamard-rotate .*', .* was made by" $command -o x.h5
	last=${command##* } rest=${command% *}
	# shellcheck disable=SC2086
	no '... from a pipe' 1 'have other inputs' sh -c "cat $last | ${rest} - -o x.h5"
done <mixtures
ok '... and no result is written' [ ! -e x.h5 ]
grep -v tensor-join mixtures | while read -r command; do
	$command --force-basis -o x.h5 >out 2>err || { echo "$command" && cat err; } >>failed
	grep -q 'warning: .*have other inputs' err || echo "$command: no warning" >>failed
done
is '--force-basis continues with a warning' "$(cat failed 2>/dev/null)" ''
ok '... and is in the history' \
	sh -c 'dpq-run -q --force-basis --hessian h2.h5 --group 8 r1.h5 -o x.h5 &&
		h5dump -a /history x.h5 | grep -q -e --force-basis'
warns '... and is without effect if the files fit' 'without effect here: --force-basis' \
	dpq-run --force-basis --hessian h1.h5 --group 8 r1.h5 -o x.h5
warns 'a file without a basis' \
	'has no attribute basis: cannot check that its layers have the same inputs as those of h1.h5' dpq-run \
	--hessian h1.h5 --group 8 "$ref/llama-gqa.h5" -o x.h5
py no_digest
no 'a basis that is not a digest' 1 "bad.h5: /: attribute basis is 'none', expected 64 hexadecimal digits" \
	dpq-run --hessian h1.h5 --group 8 bad.h5 -o x.h5

dpq-run -q --compensate none --group 8 --shard 1/2 r1.h5 -o f1.h5
cat r1.h5 | dpq-run -q --compensate none --group 8 --shard 2/2 -o f2.h5
ok 'shards of one model, read from a file and from a pipe' tensor-join f1.h5 f2.h5 -o x.h5
no '... shards of two models' 1 'have other inputs' tensor-join f1.h5 a2.h5 -o x.h5

# --- Hessians of different models are not added ---

hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 qn.h5 -o hq.h5
hessian-accum -q --tokens llama-gqa-t.h5 --ctx 32 --limit 64 llama-gqa.h5 -o hs.h5
ok 'a Hessian has the digests of its model and of its tokens' \
	sh -c 'h5dump -A hs.h5 | grep -q model_sha256 && h5dump -A hs.h5 | grep -q tokens_sha256'
no 'Hessians of a model and of its quantized form, with one basis' 1 \
	'hq.h5: is of another model than h.h5 \(attribute model_sha256\)' hessian-accum h.h5 hq.h5 -o x.h5
ok 'Hessians of one model on two texts are added' hessian-accum h.h5 hs.h5 -o sum.h5
no '... their sum and a Hessian of another model are not' 1 'hq.h5: is of another model than sum.h5' \
	hessian-accum sum.h5 hq.h5 -o x.h5

# --- attribute calibration: the tokens of a calibration set ---

lines() { py calibration "$1"; }
sha=$(py tokens_digest)
is 'the digest of the ids' "$(py tokens_attribute)" "$sha"
is 'calibration of a Hessian' "$(lines hs.h5)" "$sha 0 64"
is '... of a sum of Hessians' "$(lines sum.h5)" "$sha 0 640;$sha 0 64"
dpq-run -q --hessian hs.h5 --group 8 llama-gqa.h5 -o q.h5
is '... of a quantized model' "$(lines q.h5)" "$sha 0 64"
is '... of a model that is quantized without calibration' "$(lines qn.h5)" none
for tool in 'msq-calib --act-format int8' 'dpq-run --sequential --group 8'; do
	$tool -q --tokens llama-gqa-t.h5 --ctx 32 --limit 96 llama-gqa.h5 -o x.h5
	is "calibration: $tool" "$(lines x.h5)" "$sha 0 96"
done
gar-order -q --group 8 hs.h5 -o os.h5
is 'calibration of a column order' "$(lines os.h5)" "$sha 0 64"
dpq-run -q --hessian h.h5 --order os.h5 --group 8 llama-gqa.h5 -o x.h5
is '... of a model quantized with a Hessian and an order' "$(lines x.h5)" "$sha 0 640;$sha 0 64"
dpq-run -q --order os.h5 --compensate none --group 8 llama-gqa.h5 -o x.h5 2>/dev/null
is '... of a model whose order is without effect' "$(lines x.h5)" none
smooth-scale -q --hessian hs.h5 llama-gqa.h5 -o x.h5
is 'calibration: smooth-scale' "$(lines x.h5)" "$sha 0 64"
fbq-run -q --hessian hs.h5 --group 8 --method caldera --rank 2 --steps 1 llama-gqa.h5 -o x.h5
is 'calibration: fbq-run' "$(lines x.h5)" "$sha 0 64"
warns 'a test set that is the calibration set' 'q.h5: was calibrated on tokens 0 to 63 of llama-gqa-t.h5' \
	eval-ppl --tokens llama-gqa-t.h5 --ctx 32 q.h5
sample-tokens -q --length 64 --ctx 32 --seed 7 llama-gqa.h5 -o other-t.h5
ok '... another test set: no warning' sh -c 'eval-ppl --tokens other-t.h5 --ctx 32 q.h5 2>&1 | (! grep calibrated)'
done_testing
