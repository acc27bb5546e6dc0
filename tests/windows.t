#!/bin/sh
# windows.t -- --skip, --limit and --random-windows: against files cut by hand and the law of the draw; ranges in
# outputs and warnings, in sums, shards, records and resumed runs
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model-import -q "$top/tests/tiny" -o model.h5
sample-tokens -q --length 400 --ctx 16 --seed 1 model.h5 -o t.h5
ppl() { eval-ppl -q --ctx 16 "$@" model.h5; }
same() { grep -q '^ppl' got && cmp want got; }	# both have a result
hessian() { hessian-accum -q --ctx 16 "$@" model.h5; }

# --- --skip and --limit are a file that was cut ---
py cut t.h5 cut.h5 37 237; py cut t.h5 rest.h5 37 400
for c in gptq bos llama.cpp sliding; do
	ppl --convention $c --tokens cut.h5 >want; ppl --convention $c --tokens t.h5 --skip 37 --limit 200 >got
	ok "eval-ppl --convention $c" same
done
ppl --convention llama.cpp --tokens rest.h5 >want; ppl --convention llama.cpp --tokens t.h5 --skip 37 >got
ok 'without --limit' same
ppl --tokens t.h5 --skip 0 >got; ppl --tokens t.h5 >want; ok '--skip 0 is everything' same
py sequences t.h5 s.h5 20 50 51 130 300; py cut s.h5 s-cut.h5 37 237
for c in gptq bos sliding; do
	ppl --convention $c --tokens s-cut.h5 >want; ppl --convention $c --tokens s.h5 --skip 37 --limit 200 >got
	ok "a file with sequences, $c" same
done
py cut s.h5 s-cut.h5 50 400; ppl --tokens s-cut.h5 >want; ppl --tokens s.h5 --skip 50 >got
ok 'from the start of a sequence' same
py positions s.h5 p.h5; py cut p.h5 p-cut.h5 37 237
ppl --tokens p-cut.h5 >want; ppl --tokens p.h5 --skip 37 --limit 200 >got; ok '... with positions' same
hessian --tokens cut.h5 -o want.h5; hessian --tokens t.h5 --skip 37 --limit 200 -o got.h5
ok 'hessian-accum' h5diff want.h5 got.h5 /model
msq-calib -q --act-format int8 --tokens cut.h5 --ctx 16 model.h5 -o want.h5
msq-calib -q --act-format int8 --tokens t.h5 --ctx 16 --skip 37 --limit 200 model.h5 -o got.h5
ok 'msq-calib' h5diff want.h5 got.h5 /model
dpq-run -q --group 4 --sequential --tokens cut.h5 --ctx 16 model.h5 -o want.h5
dpq-run -q --group 4 --sequential --tokens t.h5 --ctx 16 --skip 37 --limit 200 model.h5 -o got.h5
ok 'dpq-run --sequential' h5diff want.h5 got.h5 /model
# shellcheck disable=SC2046
py sequences t.h5 short.h5 $(seq 15 15 390); py cut short.h5 part.h5 30 120
for f in short part t; do py reorder $f.h5 $f-r.h5; done
ppl --tokens part-r.h5 >want; ppl --tokens short-r.h5 --skip 20 --limit 110 >got
ok 'reordered sequences are whole or left out' same
py activations a.h5
hessian-accum -q --skip 7 --limit 20 a.h5 -o h.h5; ok 'rows of activations' py of_rows h.h5 a.h5 7 27
hessian-accum -q --skip 7 a.h5 -o h.h5; ok '... without --limit' py of_rows h.h5 a.h5 7 50

# --- mistakes ---
no 'beyond the text' 1 't.h5: /tokens: --skip 400 leaves none of the 400 ids' ppl --tokens t.h5 --skip 400
no '... far beyond' 1 'leaves none of the 400 ids' ppl --tokens t.h5 --skip 17179869183G --limit 5
no 'too few ids are left' 1 '10 ids do not fill one window' ppl --tokens t.h5 --skip 390
no '... of hessian-accum' 1 'leaves none of the 400 ids' hessian --tokens t.h5 --skip 1K -o x.h5
no 'no whole reordered sequence' 1 'short-r.h5: /index: --skip 31 leaves no whole sequence' \
	ppl --tokens short-r.h5 --skip 31 --limit 20
no 'the only sequence, reordered' 1 't-r.h5: /index: --skip 1 leaves no whole sequence' \
	ppl --ctx 512 --tokens t-r.h5 --skip 1
no 'beyond the rows of activations' 1 'a.h5: /a/input: --skip 50 leaves none of the 50 rows' \
	hessian-accum -q --skip 50 a.h5 -o x.h5
no 'random rows of activations' 2 '--random-windows: a file of activations does not use it' \
	hessian-accum -q --random-windows 0 a.h5 -o x.h5
for c in llama.cpp sliding; do
	no "random windows and $c" 2 "--random-windows: --convention $c reads a text from end to end" \
		ppl --convention $c --random-windows 0 --tokens t.h5
done
no 'random windows of reordered tokens' 1 'short-r.h5: /index: --random-windows needs' \
	ppl --random-windows 0 --tokens short-r.h5
no 'no sequence is as long as a window' 1 's.h5: /sequence: no sequence fills a window of --ctx 200' \
	ppl --ctx 200 --random-windows 0 --tokens s.h5
no 'a limit below one window' 1 '7 ids do not fill one window of --ctx 16' \
	ppl --random-windows 0 --limit 7 --tokens t.h5
for seed in '' -1 +1 1.5 x 5KK; do
	no "the seed '$seed'" 2 "--random-windows: '.*' is not a whole number" \
		ppl --tokens t.h5 --random-windows="$seed"
done
warns 'without effect on a sum' '--skip, --limit, --random-windows .Hessian files are summed whole' \
	hessian-accum --skip 1 --limit 2 --random-windows 3 h.h5 -o x.h5

# --- random windows ---
drawn() {	# drawn CONVENTION SKIP LIMIT SEED
	ppl --convention "$1" --skip "$2" --limit "$3" --random-windows "$4" --tokens t.h5 -o r.record >/dev/null &&
		py drawn r.record t.h5 "$1" 16 "$2" "$3" "$4"
}
ok 'random windows by their law' drawn gptq 0 0 0
ok '... another seed' drawn gptq 0 0 12345678901
ok '... of bos' drawn bos 0 0 5
ok '... some, of the whole text' drawn gptq 0 64 0
ok '... after --skip' drawn bos 100 90 3
ppl --random-windows 1 --tokens t.h5 >one; ppl --random-windows 1 -j 1 --tokens t.h5 >two
ok 'equal for any number of threads' sh -c 'grep -q ppl one && cmp one two'
ppl --random-windows 1K --tokens t.h5 -o k.h5 >/dev/null
is 'the history has the seed as digits' "$(h5dump -a history k.h5 | grep -c -- '--random-windows 1024')" 1
hessian --random-windows 4 --tokens t.h5 -o whole.h5
for i in 1 2 3; do hessian --random-windows 4 --shard $i/3 --tokens t.h5 -o s$i.h5; done
hessian-accum -q s1.h5 s2.h5 s3.h5 -o sum.h5
ok 'shards divide the same windows' py near whole.h5 sum.h5
is '... with one line of calibration' "$(tensor-info --json sum.h5 | grep -o '"calibration": [^]]*]')" \
	"$(tensor-info --json whole.h5 | grep -o '"calibration": [^]]*]')"
ranges() { tensor-info "$2" | sed -n "/^$1/,/^\$/p" | awk 'NR > 2 && NF { print $2, $3, $4, $5 }' | xargs; }
is 'tensor-info prints seed and windows' "$(ranges calibration whole.h5)" '0 400 4 25'
is '... of a record' "$(ranges evaluation k.h5)" '0 400 1024 25'

# --- shards of different ranges ---
hessian --skip 5 --shard 1/2 --tokens t.h5 -o a1.h5; hessian --skip 6 --shard 2/2 --tokens t.h5 -o a2.h5
no 'shards of different ranges' 1 "a2.h5: was made by '.*--skip 6', a1.h5 by '.*--skip 5'" \
	hessian-accum -q a1.h5 a2.h5 -o x.h5
hessian --random-windows 5 --shard 2/3 --tokens t.h5 -o a2.h5
no 'shards of different draws' 1 "a2.h5: was made by '.*--random-windows 5'" \
	hessian-accum -q s1.h5 a2.h5 s3.h5 -o x.h5
for i in 1 3; do py without_digest s$i.h5 p$i.h5; done
py ranges s2.h5 p2.h5 '1 400 random 4 25'
no 'shards of different ranges of tokens from a pipe' 1 \
	'p2.h5: is a shard of other tokens, or of another range of them, than p1.h5 .attribute calibration' \
	hessian-accum -q p1.h5 p2.h5 p3.h5 -o x.h5

# --- warnings ---
quantize() { dpq-run -q --group 4 --hessian "$1" model.h5 -o q.h5; }
judge() { eval-ppl --ctx 16 --tokens t.h5 "$@" q.h5; }
silent() { "$@" >/dev/null 2>silent && ! grep -q warning silent; }
hessian --limit 200 --tokens t.h5 -o first.h5; hessian --skip 200 --tokens t.h5 -o second.h5; quantize first.h5
ok 'other ids of the file: no warning' silent judge --skip 200
warns 'one id in common' 'q.h5: was calibrated on tokens 199 to 199 of t.h5' judge --skip 199
warns 'all ids' 'q.h5: was calibrated on tokens 0 to 199 of t.h5' judge
warns 'the first ids' 'was calibrated on tokens 0 to 99 of t.h5' judge --limit 100
warns 'random windows are the whole range' 'was calibrated on random windows of tokens 150 to 199' \
	judge --skip 150 --limit 64 --random-windows 0
quantize second.h5
ok 'calibrated on the last ids: no warning' silent judge --limit 200
warns '... one id in common' 'was calibrated on tokens 200 to 200 of t.h5' judge --limit 201
hessian --skip 100 --limit 64 --random-windows 0 --tokens t.h5 -o random.h5; quantize random.h5
ok 'calibrated on random windows after --skip: no warning before' silent judge --limit 100
warns '... a warning after it' 'was calibrated on random windows of tokens 100 to 399 of t.h5' judge
ok 'the sum of two ranges: no warning' silent hessian-accum first.h5 second.h5 -o both.h5
is '... has both' "$(ranges calibration both.h5)" '0 200 200 400'
warns 'the sum of ranges with ids in common' \
	'calibrated on random windows of tokens 100 to 199 of the same text as first.h5' \
	hessian-accum first.h5 random.h5 -o x.h5

# --- records ---
ppl --tokens t.h5 --skip 37 -o r.record >/dev/null
ok 'a record of the same range' ppl --tokens t.h5 --skip 37 --paired r.record
ok '... in a file cut by hand' ppl --tokens rest.h5 --paired r.record
no 'of another range' 1 \
	'r.record: /: attribute evaluation: has tokens from 37 on, expected from 38 on: use the same --skip' \
	ppl --tokens t.h5 --skip 38 --paired r.record
no '... shorter' 1 'r.record: /target: has other tokens, or other windows' \
	ppl --tokens t.h5 --skip 37 --limit 100 --paired r.record
ok '... that ends within the same window' ppl --tokens t.h5 --skip 37 --limit 362 --paired r.record
py old r.record old.record
ok 'a record of version 1.0' ppl --tokens t.h5 --skip 37 --paired old.record
no '... of another range' 1 'old.record: /target: has other tokens' ppl --tokens t.h5 --skip 38 --paired old.record
ppl --tokens t.h5 --random-windows 2 -o k.record >/dev/null
ok 'a record of the same random windows' ppl --tokens t.h5 --random-windows 2 --paired k.record
for seed in '--random-windows 3' ''; do
	# shellcheck disable=SC2086
	no "of other windows: '$seed'" 1 'attribute evaluation: has other windows: use the same --random-windows' \
		ppl --tokens t.h5 $seed --paired k.record
done

# --- a stopped run ---
resumed() { hessian --resume --tokens t.h5 "$@" -o resumed.h5; }
ln -s nowhere/h.h5 resumed.h5
no 'a run that fails at its end, since the folder of its result does not exist' 1 'resumed.h5: cannot create a file' \
	resumed --skip 9
rm resumed.h5
no '... is not continued with another range' 1 'resumed.h5.part: .*--skip 9' resumed --skip 10
ok '... but with the same' resumed --skip 9
hessian --skip 9 --tokens t.h5 -o want.h5; ok '... with the same result' h5diff want.h5 resumed.h5
done_testing
