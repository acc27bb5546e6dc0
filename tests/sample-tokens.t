#!/bin/sh
# sample-tokens.t -- tokens sampled from a model: reproducible, with or without a rounded cache, and errors
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5
run() { sample-tokens --ctx 21 "$@"; }

run --length 3000 "$model" -o a.h5
ok 'the contents of the file' py written
run --length 3000 "$model" -o b.h5; ok 'the same bytes in a second run' cmp a.h5 b.h5
run -j 3 --length 3000 "$model" -o b.h5; ok 'the same bytes with other threads' cmp a.h5 b.h5
run --seed 1 --length 3000 "$model" -o b.h5; no 'other tokens with another seed' 1 differ sh -c 'cmp a.h5 b.h5 >&2'
run --length 2345 "$model" -o b.h5
ok 'a shorter text is the start of a longer one' py first
# shellcheck disable=SC2002
cat "$model" | run --length 3000 | cat >b.h5
ok 'pipes: the same tokens' py through_pipes
run --kv-format none --length 3000 "$model" -o b.h5
ok '--kv-format none: the same tokens' py cache
run --kv-format int2 --length 3000 "$model" -o c.h5; run -j 3 --kv-format INT2:8 --length 3000 "$model" -o d.h5
ok 'a rounded cache: the same tokens with other threads' py rounded_cache_same_with
msq-calib -q --kv-format int2 "$model" -o kv.h5
run --length 3000 kv.h5 -o d.h5
run --kv-format none --length 3000 kv.h5 -o e.h5
ok '... by the attribute of the model' py model_says
ok '... unless --kv-format is none' py but_where_option_says
run --length 40 --temperature 0 "$model" -o g.h5
ok 'temperature 0: all sequences are the same' py each_same
# The mean nll of sampled ids is the mean entropy of the model, far below the nll of other text.
own=$(eval-ppl --ctx 21 --convention bos --tokens a.h5 "$model" | awk '/^nll\t/ { print $2 }')
py faults
random=$(eval-ppl --ctx 21 --convention bos --tokens r.h5 "$model" | awk '/^nll\t/ { print $2 }')
ok "sampled text is likelier than noise ($own, $random)" awk "BEGIN { exit !($own + 0.5 < $random) }"
score() { eval-ppl --ctx 21 --convention bos --tokens c.h5 "$@" "$model" | sed -n 's/^nll\t//p'; }
ok "text sampled with a rounded cache is likelier with this cache ($(score --kv-format int2), $(score))" \
	awk "BEGIN { exit !($(score --kv-format int2) + 0.01 < $(score)) }"
no 'groups that do not divide a head' 1 'llama-gqa.h5: /config: heads have 8 channels' \
	run --kv-format int4:5 "$model" -o none
ok '... no file is left' test ! -e none
py no_bos "$model"
no 'no BOS' 1 'none.h5: /config: has no bos_token_id' run none.h5
no 'a length of 0' 2 'length' run --length 0 "$model"
no 'a negative temperature' 2 'temperature' run --temperature -1 "$model"

if [ -z "$shared" ]; then skip 'stories260K' 'no ../shared/data'; else
	model-import -q "$shared/stories260K" -o m.h5 && sample-tokens --length 2550 --ctx 256 m.h5 -o s.h5
	nll=$(eval-ppl --tokens s.h5 --ctx 256 --convention bos m.h5 | awk '/^nll\t/ { print $2 }')
	ok "stories260K: the nll of its sampled text ($nll)" awk "BEGIN { exit !($nll > 1.1 && $nll < 1.5) }"
fi
done_testing
