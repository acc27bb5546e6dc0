#!/bin/sh
# conventions.t -- the conventions llama.cpp and sliding: likelihoods of transformers (tests/ref/make.py); bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model-import -q "$top/data/prose" -o prose.h5
cp "$top/tests/ref/conventions.h5" prose1.h5
cp "$top/tests/ref/llama-gqa.h5" m.h5	# random weights, where any model will do
py make
value() { sed -n "s/^$1	//p" "$2"; }

py rows >rows
while read -r convention bos ctx stride; do
	set -- --convention "$convention" --ctx "$ctx"
	[ "$convention" = sliding ] && set -- "$@" --stride "$stride"
	eval-ppl --tokens "prose$bos.h5" "$@" prose.h5 -o r.h5 >out
	# both have float32 logits, which differ by more than 1e-6 because the orders of sums differ
	ok "$convention, add_bos $bos, ctx $ctx, stride $stride: every target as in transformers" \
		py targets "$convention $bos $ctx $stride"
done <rows

# only llama.cpp leaves out one final newline, and only if --limit has not removed it
for c in llama.cpp sliding; do
	eval-ppl --tokens plain.h5 --ctx 51 --convention $c m.h5 >plain-$c
	eval-ppl --tokens t1.h5 --ctx 51 --convention $c m.h5 >with-$c
done
ok 'llama.cpp: a final newline makes no difference' cmp plain-llama.cpp with-llama.cpp
is 'sliding: a final newline is one more target' "$(($(value tokens with-sliding) - $(value tokens plain-sliding)))" 1
for k in 190 191 192 193; do	# the last id contains the newline: in the last window of 64 (190, 191), or in no window
	case $k in 190|191) no "the last of $k ids contains the newline and more" 1 \
		"within$k.h5: /tokens: the last id of the last window contains" eval-ppl -q --ctx 64 \
		--convention llama.cpp --tokens within$k.h5 m.h5 ;;
	*) ok "the last of $k ids contains the newline and more, and is in no window" eval-ppl -q --ctx 64 \
		--convention llama.cpp --tokens within$k.h5 m.h5 ;; esac
done
ok '... sliding accepts it' eval-ppl -q --ctx 64 --convention sliding --tokens within191.h5 m.h5
eval-ppl -q --ctx 64 --convention llama.cpp --limit 191 --tokens t1.h5 m.h5 >x
is '--limit: no newline is left to drop' "$(value tokens x)" 93
printf 'once\n' >text
for end in newline:1: none:0:; do	# with --bytes the newline is one id
	[ $end = none:0: ] && printf once >text
	tokenize -q --bytes text -o b.h5
	is "tokenize stores whether the text ends in a newline: ${end%%:*}" "$(py newline)" "$(echo $end | cut -d: -f2)"
done

# the windows of each sequence slide separately
s() { eval-ppl -q --ctx 100 --convention sliding --stride 40 --tokens "$1" m.h5 >"$2"; }
s sequence.h5 all; s one.h5 one; s two.h5 two
ok 'sequences: the mean over the texts evaluated one by one' py mean_over_texts
ok 'the default stride is half a window' \
	sh -c 'eval-ppl -q --ctx 100 --convention sliding --tokens t1.h5 m.h5 >x &&
		eval-ppl -q --ctx 100 --convention sliding --stride 50 --tokens t1.h5 m.h5 | cmp - x'

# differences are over the same windows; their standard errors over windows follow the formula
r() { eval-ppl -q --ctx 64 --convention sliding --stride "$1" --tokens t1.h5 "$2" -o "$3" >/dev/null; }
dpq-run -q --compensate none --scale-search minmax --group 8 m.h5 -o q.h5
r 16 m.h5 r16.h5
eval-ppl -q --ctx 64 --convention sliding --stride 16 --tokens t1.h5 q.h5 --reference m.h5 -o k.h5 >k
eval-ppl -q --ctx 64 --convention sliding --stride 16 --tokens t1.h5 q.h5 --paired r16.h5 >p
dpq-run -q --compensate none --scale-search minmax --group 8 --storage int8 m.h5 -o i.h5
eval-ppl -q --ctx 64 --convention sliding --stride 16 --tokens t1.h5 i.h5 --reference m.h5 --paired k.h5 -o i-k.h5 >b
ok 'standard errors over windows' py errors_over_windows
no 'a record with another stride and the same targets' 1 'r16.h5: /window: has other windows' \
	eval-ppl -q --ctx 64 --convention sliding --stride 32 --tokens t1.h5 m.h5 --paired r16.h5
no 'a record without a divergence' 1 'r16.h5: /kl: is missing; --reference and --paired together' \
	eval-ppl -q --ctx 64 --convention sliding --stride 16 --tokens t1.h5 m.h5 --reference m.h5 --paired r16.h5
no 'a record of another reference' 1 'k.h5: /nll_of_reference: is of another reference' \
	eval-ppl -q --ctx 64 --convention sliding --stride 16 --tokens t1.h5 m.h5 --reference q.h5 --paired k.h5

# Hessians: every position of a window counts, in each window that contains it
count() { py count "$1"; }
h() { hessian-accum -q --tokens t1.h5 --ctx 100 --convention "$@" m.h5; }
ids=$(py ids)
h llama.cpp -o l.h5; is 'llama.cpp: whole windows, without the newline' "$(count l.h5)" $((ids / 100 * 100))
h sliding --stride 40 -o s.h5; is 'sliding: tokens count once per window' "$(count s.h5)" "$(py slid "$ids")"
for i in 1 2 3; do h sliding --stride 40 --shard $i/3 -o s$i.h5; done
hessian-accum -q s1.h5 s2.h5 s3.h5 -o sum.h5
ok 'shards add up to the whole' py shards

run() { eval-ppl --tokens t1.h5 "$@" m.h5; }
warns 'a stride with another convention' '--stride .*--convention is not sliding' run --ctx 64 --stride 8
warns '... of Hessians' '--stride .*--convention is not sliding' \
	hessian-accum --tokens t1.h5 --ctx 64 --stride 8 m.h5 -o x.h5
no 'a stride beyond the window' 2 '--stride 65 leaves out tokens between windows of --ctx 64' \
	run --ctx 64 --convention sliding --stride 65
no 'a stride of 0' 2 'stride' run --convention sliding --stride 0
no 'llama.cpp: windows of two ids have no target' 2 '--ctx 2 leaves no target' run --ctx 2 --convention llama.cpp
no 'too few ids' 1 't1.h5: /tokens: [0-9]* ids do not fill one window of --ctx 5000' \
	run -q --ctx 5000 --convention llama.cpp
for f in sequence position index; do
	no "llama.cpp: /$f" 1 "$f.h5: /$f: --convention llama.cpp needs one text" \
		eval-ppl -q --ctx 64 --convention llama.cpp --tokens $f.h5 m.h5
done
no 'sliding: a reordered text that does not fit' 1 'index.h5: /index: a sequence of' \
	eval-ppl -q --ctx 64 --convention sliding --tokens index.h5 m.h5
no 'an unknown value of attribute newline' 1 'odd.h5: /tokens: attribute newline is 3, expected 0, 1 or 2' \
	eval-ppl -q --ctx 64 --tokens odd.h5 m.h5
no 'an unknown convention' 2 'convention' run --convention strided
done_testing
