#!/bin/sh
# exmy-pack.t -- packed codes: packing, unpacking, products from packed words; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5
numbers='--tokens tokens.h5 --ctx 32'

py make
for f in uint1 uint2 nf3 uint4 e2m2 int5 e2m3 e1m5 e3m4; do
	dpq-run -q --compensate none --storage $f --group 16 "$model" -o codes.h5
	ok "$f is packed" exmy-pack codes.h5 -o packed.h5
	exmy-pack --unpack packed.h5 -o back.h5
	ok "$f: unpacking gives the codes back" h5diff --exclude-attribute / codes.h5 back.h5
	# shellcheck disable=SC2086
	is "$f: a packed model gives the same numbers" "$(eval-ppl $numbers packed.h5)" "$(eval-ppl $numbers codes.h5)"
done
# Products with few columns read packed words: the same up to the rounding of float sums.
nll() { eval-ppl --tokens tokens.h5 --ctx 8 --limit 16 "$@" | sed -n 's/^nll[[:space:]]*//p'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && d < by && -d < by) }'; }
for f in uint4 int4 e2m1 nf4 int5 e2m2 e4m0 nf5; do
	dpq-run -q --compensate none --storage $f --group channel "$model" | tee codes.h5 | exmy-pack -o packed.h5
	ok "$f: products from packed words" near "$(nll packed.h5)" "$(nll codes.h5)" 1e-5
	ok "$f: with 16-bit activations" \
		near "$(nll --compute-type int16 packed.h5)" "$(nll --compute-type int16 codes.h5)" 1e-4
	sample-tokens --length 62 --ctx 32 --temperature 0 codes.h5 -o a.h5
	sample-tokens --length 62 --ctx 32 --temperature 0 packed.h5 -o b.h5
	ok "$f: the same greedy tokens" h5diff a.h5 b.h5 /tokens
done
ok '16-bit activations are rounded' test "$(nll --compute-type int16 codes.h5)" != "$(nll codes.h5)"
dpq-run -q --compensate none --storage e2m2 --group channel "$top/tests/ref/llama-gqa.h5" -o codes.h5
exmy-pack codes.h5 -o packed.h5
dpq-run -q --compensate none --storage e2m2 --group channel <"$model" | exmy-pack | exmy-pack --unpack | cat >stream
cat stream | exmy-pack --layers '*' >piped.h5
ok 'pipes and files give the same' h5diff --exclude-attribute / packed.h5 piped.h5
ok "the layout of five bits is that of the paper, computed again in numpy" py five_bits

no 'an unquantized model' 1 'no layer with codes to pack' exmy-pack "$model"
no 'packing twice' 1 'no layer with codes to pack' exmy-pack packed.h5
no 'unpacking a model that is not packed' 1 'no layer that is packed' exmy-pack --unpack codes.h5
head -c 20000 packed.h5 >short.h5
no 'a packed file cut short' 1 'short.h5' exmy-pack --unpack short.h5
py faults
no 'packed columns that the model does not have' 1 'columns' eval-ppl --tokens tokens.h5 --ctx 32 columns.h5
no 'packed words without their number of columns' 1 'columns' eval-ppl --tokens tokens.h5 --ctx 32 none.h5
no 'words too few for the columns' 1 'packed' exmy-pack --unpack narrow.h5
done_testing
