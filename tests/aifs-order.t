#!/bin/sh
# aifs-order.t -- visual tokens first: the order, members that follow their tokens, likelihoods that stay the same
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

py make
aifs-order spec.h5 -o s.h5
ok 'six tokens, visual ones third and fourth' py six_tokens
for t in spec mixed one three placed; do
	aifs-order $t.h5 -o x.h5
	ok "$t: every member follows its token" py moved $t.h5 x.h5
	aifs-order x.h5 -o y.h5
	ok "$t: a second run changes nothing" py same_but_history x.h5 y.h5
	aifs-order <$t.h5 | cat >z.h5
	ok "$t: the same through pipes" py moved $t.h5 z.h5
done
for t in text plain; do
	warns "$t: a warning that nothing is reordered" "$t.h5: /modality: .*, nothing is reordered" \
		aifs-order $t.h5 -o x.h5
	ok '... the tokens are unchanged' py same_but_history $t.h5 x.h5
done
aifs-order visual.h5 -o x.h5 2>err
ok 'visual tokens only: no change and no warning' sh -c 'py same_but_history visual.h5 x.h5 && test ! -s err'
aifs-order other.h5 -o x.h5
ok 'tokens that were reordered before: /index has their first positions' py first_places

# --- a model: likelihoods of the same targets, token by token ---
for m in llama-gqa mistral-window gpt2 gemma2; do
	f=$top/tests/ref/$m.h5
	ok "$m: no likelihood changes" py likelihoods "$f"
done

# --- bad input ---
no 'a modality that is neither text nor visual' 1 \
	'kinds.h5: /modality: token 2 is of kind 2, expected 0, text, or 1, visual' \
	aifs-order kinds.h5 -o bad.h5
no 'too few modalities' 1 'few.h5: /modality: has shape' aifs-order few.h5 -o bad.h5
no 'no tokens' 1 'none.h5: /tokens: holds no token' aifs-order none.h5 -o bad.h5
no 'too few rows of bytes' 1 'few-bytes.h5: /bytes: has [0-9]* rows, expected 4, one per token' \
	aifs-order few-bytes.h5 -o bad.h5
no 'images without modalities' 1 "no-modality.h5: /modality: token 1 is text, and one of an image's" \
	aifs-order no-modality.h5 -o bad.h5
for s in far before nothing long; do
	no "a bad span: $s" 1 "span-$s.h5: /image_span: image 0 has first token" aifs-order span-$s.h5 -o bad.h5
done
no 'a span that includes text' 1 "span-text-in.h5: /modality: token 0 is text, and one of an image's" \
	aifs-order span-text-in.h5 -o bad.h5
no 'a span of another shape' 1 'span-flat.h5: /image_span: has ' aifs-order span-flat.h5 -o bad.h5
no 'an image whose tokens are not contiguous' 1 \
	'split.h5: /index: the tokens of image 0, from 4 on, do not follow each other' \
	aifs-order split.h5 -o bad.h5
no 'another kind of file' 1 "holds a 'model', expected 'tokens'" aifs-order "$top/tests/ref/gpt2.h5" -o bad.h5
ok 'no result was written' test ! -e bad.h5
done_testing
