#!/bin/sh
# places.t -- token files that store the place of each token: /sequence, /position, /index, /modality
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py make
value() { sed -n "s/^$1.//p" "$2"; }
# near NAME A B: the numbers of two results differ by no more than the rounding of printed numbers
near() { ok "$1" py near "$2" "$3"; }

for name in llama-gqa qwen2-window gpt2; do
	model=$top/tests/ref/$name.h5
	for convention in gptq bos; do
		run() { eval-ppl -q --ctx 40 --convention $convention "$@" "$model"; }
		run --tokens all.h5 >all
		is "$name, $convention: every token of every sequence is a target" "$(value tokens all)" 90
		for i in 0 1 2 3 4; do
			run --tokens part$i.h5 | awk -v n="$i" '$1 == "tokens" { t = $2 } $1 == "nll" { print t, $2 }'
		done >parts
		ok '... the mean over sequences evaluated one by one' py mean_over_parts
		run --tokens positions.h5 >x; ok '... the default positions, stored' cmp x all
		run --tokens reordered.h5 >x; near '... reordered, with index and position' x all
		run --tokens by-index.h5 >x; near '... reordered, with index' x all
		run --tokens elsewhere.h5 >x
		ok '... another result with other positions' test "$(value nll x)" != "$(value nll all)"
		run --tokens all.h5 -j 1 >x; ok '... the same on one thread' cmp x all
	done
	hessian-accum -q --ctx 40 --tokens all.h5 "$model" -o sum.h5
	for i in 0 1 2 3 4; do hessian-accum -q --ctx 40 --tokens part$i.h5 "$model" -o h$i.h5; done
	hessian-accum -q h0.h5 h1.h5 h2.h5 h3.h5 h4.h5 -o parts.h5
	hessian-accum -q --ctx 40 --tokens by-index.h5 "$model" -o reordered.hessian
	ok "$name: Hessians are the sum over sequences, in any order of their tokens" py hessians
done

# A limit in the middle of a sequence: the rest of the sequence is a window, too.
eval-ppl -q --ctx 40 --convention bos --tokens all.h5 --limit 44 "$model" >x
is 'a limit within a sequence' "$(value tokens x)" 44

eval-ppl -q --ctx 40 --convention bos --tokens by-index.h5 --limit 44 "$model" >x
is '... within a reordered sequence: the whole sequence is left out' "$(value tokens x)" 28

# Inputs rounded with one scale per modality: with tokens of one modality the result is that of one scale per tensor.
model=$top/tests/ref/llama-gqa.h5
dpq-run -q --compensate none --group channel --storage int8 "$model" -o q.h5
py scaled_models
run() { eval-ppl -q --ctx 40 "$@"; }
for m in 0 1; do
	run --tokens modality$m.h5 two.h5 >two; run --tokens text.h5 one$m.h5 >one
	ok "tokens of modality $m: the scale of the modality" cmp two one
done
run --tokens all.h5 two.h5 >x; run --tokens all.h5 one0.h5 >one
ok 'tokens without modalities are text' cmp x one
run --tokens mixed.h5 two.h5 >mixed
ok 'tokens of both modalities: another result than with either scale' py neither
no 'a third modality' 1 'third.h5: /modality: token 0 is of kind 2, expected 0, text, or 1, visual' \
	run --tokens third.h5 two.h5
hessian-accum -q --ctx 40 --tokens mixed.h5 "$model" -o mixed-h.h5
hessian-accum -q --ctx 40 --tokens positions.h5 "$model" -o plain-h.h5
ok 'Hessians of modalities sum up to the Hessian of all tokens' py modalities
done_testing
