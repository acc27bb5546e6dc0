#!/bin/sh
# bench.t -- the parts of `make bench`, on a small scale
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
random_llama() { /usr/bin/python3 "$top/tests/bench/random-llama.py" "$@"; }
bench=$top/tests/bench kernels=$top/build/tests/bench/kernels

if py 'np.ndarray' 2>/dev/null; then
	for type in f32 bf16; do
		random_llama $type --dtype $type --hidden 32 --blocks 3 --heads 4 --kv-heads 2 \
			--intermediate 48 --vocab 256 >count.$type
		is "$type: the requested number of parameters" \
			"$(cat count.$type)" $((2 * 256 * 32 + 3 * (32 * 32 * 2 + 16 * 32 * 2 + 3 * 32 * 48 + 64) + 32))
		model-import -q $type -o $type.h5
		head -c 640 "$top/README.md" >text
		tokenize --bytes text -o text.h5
		eval-ppl --tokens text.h5 --ctx 64 $type.h5 >answer
		ok "$type: a random model predicts nothing: its perplexity is near 256" \
			awk '$1 == "ppl" { p = $2 } END { exit !(p > 200 && p < 330) }' answer
	done
	random_llama again --hidden 32 --blocks 3 --heads 4 --kv-heads 2 --intermediate 48 \
		--vocab 256 >/dev/null
	ok 'the same seed gives the same bytes' cmp f32/model.safetensors again/model.safetensors
else
	skip 'random models' 'no numpy'
fi

if [ -x "$kernels" ]; then
	{
		printf '# a comment\nrow\tours\tunit\neval-ppl-2048\t1000\ttokens/s\nhessian-f32\t100\tGF/s\n'
		printf 'dpq-mse-4096x4096\t1\ts\nmodel-import\t1\ts\nrtn\t1\ts\n'
	} >bench.tsv
	printf 'before\n<!-- plan -->\nold\n<!-- /plan -->\n<!-- nodes -->\nold\n<!-- /nodes -->\nafter\n' >plan.md
	echo other >other.md
	ok 'a plan for 70 billion parameters from measured rates' /usr/bin/python3 "$bench/plan.py" "$kernels" \
		bench.tsv plan.md other.md
	ok '... its tables replace the old ones, other text is unchanged' \
		sh -c 'grep -q "28672² · 4 | 3.29 GB" plan.md && grep -q ^before plan.md && grep -q ^after plan.md &&
			! grep -q ^old plan.md && grep -q "^| 70 billion | .* TB" plan.md'
	is '... a file without places for tables is unchanged' "$(cat other.md)" other
	no 'an unknown part of the kernels' 2 "no part 'nothing'" "$kernels" nothing
else
	skip 'the plan' 'build/tests/bench/kernels is not built'
fi
done_testing
