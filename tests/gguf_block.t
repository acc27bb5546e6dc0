#!/bin/sh
# gguf_block.t -- dpq-run --storage q4_k, q5_k, q6_k and iq4_nl: codes that are blocks of a GGUF file
#
# tests/gguf_block.c compares the searches with plain ones, tests/doors/gguf_block.t with those of llama.cpp.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model-import -q "$top/data/prose" -o m.h5
sample-tokens -q --length 2048 --ctx 128 --seed 2 m.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 128 m.h5 -o h.h5
dpq() { dpq-run -q --compensate none "$@" 2>err; }
nll() { eval-ppl -q --tokens tokens.h5 --ctx 128 --limit 1024 "$1" 2>/dev/null | sed -n 's/^nll[[:space:]]*//p'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && d < by && -d < by) }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b) }'; }
error() { tensor-diff -q --reference m.h5 --hessian h.h5 "$@" 2>/dev/null | awk '$1 == "all" { print $NF }'; }
report() { awk '$1 == "all" { print $2 }' "$1"; }

for s in 'q4_k 4.5' 'q5_k 5.5' 'q6_k 6.5625' 'iq4_nl 4.5'; do
	set -- $s
	dpq --storage "$1" m.h5 -o plain.h5
	ok "$1" dpq --hessian h.h5 --storage "$1" --report r.tsv m.h5 -o "$1.h5"
	is "$1: bits per weight" "$(tensor-info "$1.h5" | awk '$4 == "blocks" { print $3, $5, $6 }')" "$2 $1 -"
	ok "$1: the error that tensor-diff finds" near "$(error "$1.h5")" "$(report r.tsv)" 1e-8
	ok "$1: importances of inputs make it smaller" less "$(error "$1.h5")" "$(error plain.h5)"
	ok "$1: as GGUF" model-export -q --to gguf "$1.h5" -o q.gguf
	ok "$1: ... the blocks, byte for byte" py written "$1.h5" q.gguf
	ok "$1: ... are read back" model-import -q q.gguf -o back.h5
	ok "$1: ... as the weights that the codes are for" py stands_for "$1.h5" back.h5
	ok "$1: eval-ppl runs from the codes" near "$(nll "$1.h5")" "$(nll back.h5)" 1e-6
done
ok '--blocks none writes them plainly' model-export -q --to gguf --blocks none q4_k.h5 -o f.gguf
model-import -q f.gguf -o f.h5
ok '... as the same weights' py stands_for q4_k.h5 f.h5
ok '... and --to hf' sh -c 'model-export -q --to hf q4_k.h5 -o hf 2>/dev/null && model-import -q hf -o hf.h5'
ok '... as the same weights, rounded to bf16' near "$(nll hf.h5)" "$(nll q4_k.h5)" 2e-3
tensor-stats --layers /model/layers/0/mlp/up_proj q6_k.h5 >stats
is 'tensor-stats: no columns share a scale' "$(awk 'NR == 2 { print $2, $3, $7 }' stats)" 'q6_k - 6.5625'

# Only the mean squares of inputs count.
for f in q4_k q6_k iq4_nl; do
	py diagonal h.h5 d.h5 4
	dpq --hessian d.h5 --storage $f m.h5 -o d.q.h5
	ok "$f: only the diagonal of the Hessian is read, over its tokens" py same_codes $f.h5 d.q.h5
done
first='--storage q4_k --layers /model/layers/0/self_attn/q_proj'
# shellcheck disable=SC2086
{
	dpq $first --hessian h.h5 m.h5 -o one.h5
	dpq $first --sequential --tokens tokens.h5 --ctx 128 m.h5 -o seq.h5
}
ok '--sequential gives importances, too' py same_codes one.h5 seq.h5
is '... and says so in the history, not in a warning' \
	"$(cat err; tensor-info seq.h5 | grep -o -e '--sequential --ctx 128')" '--sequential --ctx 128'
dpq -j 1 --hessian h.h5 --storage q4_k m.h5 -o one.h5
ok 'the same on one thread' h5diff --exclude-attribute / q4_k.h5 one.h5
dpq --hessian h.h5 --storage q4_k <m.h5 | cat >stream.h5; tensor-join -q stream.h5 -o joined.h5
ok 'as a stream' h5diff --exclude-attribute / q4_k.h5 joined.h5
PTQ_CPU=plain dpq --hessian h.h5 --storage q4_k m.h5 -o cpu.h5
ok 'with plain kernels' py same_codes q4_k.h5 cpu.h5
dpq --hessian h.h5 --storage q4_k --layer-rotation two-sided m.h5 -o turned.h5
ok 'a rotated layer' less "$(error turned.h5)" 1e-2
dpq --storage q4_k --group 32 --scale-dtype f16 --damp 0.1 --hessian h.h5 m.h5 -o idle.h5
ok 'options without effect' \
	grep -q 'without effect here: --group, --scale-dtype, --damp (a storage of blocks)' err
ok '... change nothing' py same_codes q4_k.h5 idle.h5
printf '*/up_proj storage=q4_k compensate=none\n*/down_proj storage=e8p layer-rotation=none\n' >plan
ok 'a plan, next to scales that are searched by output error' dpq-run -q --hessian h.h5 --scale-search hessian \
	--turns 1 --layers '*/0/mlp/*' --storage uint3 --group 32 --plan plan m.h5 -o mixed.h5
dpq-run -q --hessian h.h5 --layers '*/0/mlp/*' --storage uint3 --group 32 --plan plan m.h5 -o plain.h5
ok '... which concern others only' sh -c 'h5diff mixed.h5 plain.h5 /model/layers/0/mlp/up_proj &&
	h5diff mixed.h5 plain.h5 /model/layers/0/mlp/down_proj &&
	! h5diff mixed.h5 plain.h5 /model/layers/0/mlp/gate_proj'
printf '*/v_proj storage=q6_k\n*/q_proj storage=int8 group=32\n*/o_proj keep\n' >plan
ok 'a plan with other storages' dpq --storage q4_k --plan plan m.h5 -o mixed.h5
is '... their bits' \
	"$(tensor-info mixed.h5 | awk '$4 == "blocks" { print $5, $3 }' | sort | tr '\n' ' ')" \
	'bf16 16 int8 9 q4_k 4.5 q6_k 6.5625 '

# pipelines/lib/ggml.py: the layers that dpq-run quantizes, whatever their names
for m in opt mixtral neox-serial; do
	dpq --storage int4 --group channel "$top/tests/ref/$m.h5" -o codes.h5
	ok "$m: llama.cpp's library makes the same layers" py plain_copy "$top/tests/ref/$m.h5" codes.h5 copy.h5
done

# --- what is refused ---
no 'compensation' 2 '--compensate both: the blocks of q4_k are searched one by one, .*expected --compensate none' \
	dpq-run -q --hessian h.h5 --storage q4_k m.h5 -o x.h5
no 'a compute format' 2 '--compute: weights of iq4_nl are multiplied as they are decoded' \
	dpq-run -q --compensate none --storage iq4_nl --compute e4m3fn --act-mode dynamic-token m.h5 -o x.h5
small=$top/tests/ref/llama-gqa.h5
no 'rows of other lengths' 1 'has rows of 32 columns, and a block of q4_k is for 256: .*--plan, such as iq4_nl' \
	dpq-run -q --compensate none --storage q4_k "$small" -o x.h5
no 'rows of no block' 1 'down_proj: has rows of 44 columns, and a block of iq4_nl is for 32: .*such as int4' \
	dpq-run -q --compensate none --storage iq4_nl "$small" -o x.h5
printf '*/down_proj storage=int4 group=channel\n' >plan
ok '... unless a plan has another storage' dpq --storage iq4_nl --plan plan "$small" -o x.h5
rm -f x.h5
for by in 1e7 1e12 1e30; do
	py one_layer large.h5 256 $by
	for f in q4_k q6_k iq4_nl; do
		[ $f = q6_k ] && [ $by = 1e7 ] && continue
		no "$f: weights near $by" 1 'large.h5: /a/weight: weights of a row need a scale beyond the range' \
			dpq-run -q --compensate none --storage $f large.h5 -o x.h5
	done
done
no 'a format of activations' 2 '--act-format: q4_k has no grid' dpq-run -q --act-format q4_k m.h5 -o x.h5
for s in 'scale|down_proj/scale: is present, but codes of the storage format contain their scales' \
	'group|attribute group is present, but codes' 'type|attribute scale_dtype is present, but codes' \
	'code|holds in row 5, at byte 144, a code that is not valid in q4_k'; do
	py broken q4_k.h5 broken.h5 "${s%%|*}"
	no "a file: ${s%%|*}" 1 "${s#*|}" eval-ppl -q --tokens tokens.h5 --ctx 128 broken.h5
done
ok 'no file is left of a run that failed' test ! -e x.h5
done_testing
