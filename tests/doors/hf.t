#!/bin/sh
# hf.t -- folders of `model-export --to hf`, run by transformers: the likelihoods of eval-ppl
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers torch transformers h5py
export OMP_NUM_THREADS=1
nll() { eval-ppl -q --ctx 128 --tokens "$1" "$2" 2>/dev/null | awk '$1 == "nll" { print $2 }'; }

# transformers runs in double: the differences are the rounding of float32 in eval-ppl, for any type of the folder.
names=
for f in "$top"/tests/ref/*.h5 "$top"/tests/ref/vision/*.h5; do
	m=$(basename "$f" .h5)
	case $m in
	checkpoints | conventions | fp4 | hessians | texts) continue ;;
	llava-postnorm) skip "$m" 'no class of transformers has such an encoder'; continue ;;
	esac
	py apart "$f" "$m.h5" "$m-t.h5"
	for d in f32 bf16 f16; do
		model-export -q --dtype $d -o "$m-$d" "$m.h5" && model-import -q "$m-$d" -o "$m-$d.h5" 2>/dev/null
		names="$names $m-$d"
	done
	near "$m: the likelihood after import" "$(nll "$m-t.h5" "$m-f32.h5")" "$(nll "$m-t.h5" "$m.h5")" 0
done
# shellcheck disable=SC2086
peer likelihoods $names >peers 2>peers.err || cat peers.err >&2
for m in $names; do
	near "$m: the likelihood by transformers" \
		"$(sed -n "s/^$m	//p" peers)" "$(nll "${m%-*}-t.h5" "$m.h5")" 1e-6
done

# Language models of every kind inside LLaVA, with the names of both generations of checkpoints; unusual forms of
# config.json.
peer folders >rows
names=
while read -r m; do
	model-import -q "$m" 2>/dev/null | model-export -q -o "$m-out" && names="$names $m"
done <rows
# shellcheck disable=SC2086
peer rows $names >peers 2>peers.err || cat peers.err >&2
while read -r m; do
	is "$m: the folder and its export are the same to transformers" "$(sed -n "s/^$m	//p" peers)" same
done <rows

# A rotated and quantized model with a branch.
model-import -q "$top/data/prose" | hadamard-rotate -q --seed 1 -o rotated.h5
sample-tokens -q --length 4096 --ctx 128 rotated.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 128 rotated.h5 -o hessian.h5
fbq-run -q --storage int4 --group 64 --steps 5 --hessian hessian.h5 rotated.h5 -o q.h5
model-export -q -o q q.h5
py no_bos tokens.h5
near 'a quantized model: the likelihood by transformers' \
	"$(peer text_likelihood q tokens.h5)" "$(nll tokens.h5 q.h5)" 1e-6
done_testing
