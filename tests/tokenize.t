#!/bin/sh
# tokenize.t -- ids of texts and texts of ids, by bytes and by the tokenizers of models, and errors
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1

# get FILE: ids, bytes and the attributes, as text
get() { py get "$1"; }
h5py=
has_h5py && h5py=yes

printf 'a\000\377' >text
tokenize --bytes text -o bytes.h5
if [ "$h5py" ]; then
	is 'ids of --bytes are the bytes' "$(get bytes.h5)" '[97, 0, 255] [1, 1, 1] 0 1 256 int32 uint16'
else
	skip 'ids of --bytes are the bytes' 'no h5py'
fi
tokenize --bytes <text >stdout.h5
ok 'from standard input to a file as standard output' cmp bytes.h5 stdout.h5
: >empty
no 'an empty text' 1 'tokenize: empty: the text is empty' tokenize --bytes empty -o no.h5
ok '... leaves no file' test ! -e no.h5
printf 'ab\000c\000' | tokenize --bytes --null -o texts.h5
printf 'ab\000c' | tokenize --bytes -0 -o texts2.h5
ok 'the last NUL may be missing' h5diff texts.h5 texts2.h5 /tokens
if [ "$h5py" ]; then
	is '--null: each text is a sequence' "$(py sequences)" '[97, 98, 99] [1, 1, 1] [0, 2, 3]'
fi
no '--null: an empty text' 1 'texts: text 1 is empty' \
	sh -c "printf 'ab\\000\\000c' >texts; tokenize --bytes --null texts -o no.h5"
warns '--null with --decode' 'without effect here: --null .--decode.' tokenize --bytes --null --decode bytes.h5 -o text2
no 'empty standard input' 1 '<stdin>: the text is empty' tokenize --bytes -o no.h5
no 'a missing text' 1 'missing: cannot open: No such file' tokenize --bytes missing -o no.h5
no 'a folder' 1 'is a folder' tokenize --bytes . -o no.h5
no 'neither --model nor --bytes' 2 'exactly one of --model and --bytes' tokenize text -o no.h5
no 'both --model and --bytes' 2 'exactly one of --model and --bytes' tokenize --bytes --model x.h5 text -o no.h5
warns '--special without a model' 'without effect here: --special .--bytes.' \
	tokenize --bytes --special text -o special.h5
model-import -q "$top/data/prose" -o prose.h5
tokenize --model "$top/data/prose" text -o folder.h5
is '... and its folder' "$(get folder.h5)" "$(tokenize --model prose.h5 text -o file.h5; get file.h5)"
for how in '--model prose.h5' --bytes; do
	# shellcheck disable=SC2086
	tokenize $how <text | tokenize $how --decode -o "text$how"
done
ok 'a model of bytes: as --bytes' sh -c 'cmp text "text--model prose.h5" && cmp text text--bytes'
no '... has no chats' 1 'prose.h5: /tokenizer: is missing, --chat needs it' \
	tokenize --chat --model prose.h5 text -o no.h5
no 'a missing model' 1 'missing.h5' tokenize --model missing.h5 text -o no.h5
no 'tokens in place of a model' 1 'bytes.h5' tokenize --model bytes.h5 text -o no.h5

if [ "$h5py" ] && [ "$shared" ]; then
	model-import "$shared/stories260K" -o model.h5
	printf 'Once upon <s>\n' | tokenize --model model.h5 -o plain.h5
	is 'ids, bytes, attributes' "$(get plain.h5)" \
		'[403, 407, 410, 504, 419, 505, 13] [4, 5, 1, 1, 1, 1, 1] 1 1 512 int32 uint16'
	printf 'Once upon <s>\n' | tokenize --special --model model.h5 -o special.h5
	is 'special tokens on request' \
		"$(get special.h5)" '[403, 407, 410, 1, 410, 13] [4, 5, 1, 3, 0, 1] 1 1 512 int32 uint16'
	tokenize --model model.h5 "$shared/tinystories.txt" -o all.h5
	# crc of the ids that tokenizers 0.23.3 gives, as little-endian int32
	is 'the ids of the whole text tinystories' "$(py crc)" '531907 2935011348 1048576'
	model-import "$shared/stories260K" | cat >model.stream
	tokenize --model model.stream "$shared/tinystories.txt" -o from-stream.h5
	ok 'a model as a stream: the same bytes' cmp all.h5 from-stream.h5
	ok 'the result has the history of the model' sh -c 'h5dump -a history:model all.h5 | grep -q "model-import"'
	py faults
	no 'a model without a tokenizer' 1 'none.h5: /tokenizer: is missing' tokenize --model none.h5 text -o no.h5
	no 'ids beyond the vocabulary' 1 'is not below the 400' \
		tokenize --model narrow.h5 "$shared/tinystories.txt" -o no.h5
	no 'a damaged tokenizer' 1 'broken.h5: /tokenizer:[0-9]*: not valid JSON' \
		tokenize --model broken.h5 text -o no.h5
	tokenize --model no-bos.h5 text -o no-bos-tokens.h5
	is 'the BOS of config.json if the tokenizer adds none' \
		"$(get no-bos-tokens.h5)" '[261, 3, 242, 194, 192] [1, 1, 1, 0, 0] 1 0 512 int32 uint16'
else
	skip 'ids by the tokenizer of a model' 'no h5py or no shared data'
fi

# --- folders of models; texts of ids ---
py byte_level "$top"
/usr/bin/python3 -B "$top/tests/ref/bytelevel.py" text 200000 5 >mixed
for name in GPT-2 Llama SmolLM; do
	tokenize --model $name broken -o broken.h5
	tokenize --model $name mended -o mended.h5
	ok "$name: invalid UTF-8 is replaced as in Python" \
		sh -c "tokenize --model $name --decode broken.h5 | cmp - mended && h5diff broken.h5 mended.h5 /tokens"
	ok "$name: the text of the ids is the original text" \
		sh -c "tokenize --model $name mixed | tokenize --model $name --decode | cmp - mixed"
	tokenize --special --model $name mixed | tokenize --model $name --decode -o special
	ok "$name: ... with special tokens, in a file" cmp special mixed
done
tokenize --model GPT-2 mixed -o gpt2.h5
head -c 3000 mixed | tr '\000' ' ' >first
tail -c +3001 mixed | head -c 5000 | tr '\000' ' ' >second
{ cat first; printf '\000'; cat second; } | tokenize --null --model GPT-2 -o both.h5
if [ "$h5py" ]; then
	for t in first second; do tokenize --model GPT-2 $t -o $t.h5; done
	ok '--null: each text has the ids of the text alone' py apart
fi
if [ "$h5py" ]; then
	is 'bytes of tokens sum up to the text with invalid UTF-8' "$(py broken_text)" 'True True True'
	py damaged
	no 'an id without a token' 1 'strange.h5: id 950 at 3 has no token in GPT-2: tokenizer' \
		tokenize --model GPT-2 --decode strange.h5
	ok 'half a character is U+FFFD' \
		sh -c "tokenize --model GPT-2 --decode half.h5 | tail -c 3 | od -An -tx1 | grep -q 'ef bf bd'"
	is 'texts of several sequences, one per line' \
		"$(tokenize --model GPT-2 --decode sequences.h5 | wc -c)" $(($(wc -c <mixed) + 2))
else
	skip 'bytes, sequences and unusual ids' 'no h5py'
fi
no 'ids of another vocabulary' 1 'is not in the model.s vocabulary of 256' tokenize --bytes --decode gpt2.h5 -o no.h5
warns 'ids of another tokenizer' 'made by another tokenizer than that of Llama' \
	tokenize --model Llama --decode gpt2.h5 -o text.txt
warns '--special with --decode' 'without effect here: --special .--decode.' \
	tokenize --model GPT-2 --special --decode gpt2.h5 -o text.txt
no 'a text in place of tokens' 1 'mixed: ' tokenize --model GPT-2 --decode mixed -o no.txt
no 'an input as the result' 1 'gpt2.h5: is an input' tokenize --model GPT-2 --decode gpt2.h5 -o gpt2.h5
no 'a full disk' 1 '/dev/full: cannot write' tokenize --model GPT-2 --decode gpt2.h5 -o /dev/full
no 'a folder without a tokenizer' 1 'bare: tokenizer: is missing; without a tokenizer the vocabulary must be 256' \
	tokenize --model bare mixed -o no.h5
no 'a pattern with exponential time' 1 'catastrophe: tokenizer: pattern .*given up: match limit' sh -c \
	'{ printf "%400s" | tr " " a; echo b; } | tokenize --model catastrophe -o no.h5'
head -c 100000 /dev/zero | tr '\000' a >letters
printf '\303\251%.0s' $(seq 100) >accents
short() { timeout 300 sh -c 'ulimit -v 6000000; exec "$@"' x "$@"; }
for name in doubles long; do
	no "a normalizer that makes a text grow ($name)" 1 "$name: tokenizer: makes a text more than 64 times as long" \
		short tokenize --model $name letters -o no.h5
done
no 'pre-tokenizers that make a text grow' 1 'cuts: tokenizer: makes a text more than 64 times as long' \
	short tokenize --model cuts accents -o no.h5
tokenize --model answers letters -o answers.h5
no 'decoders that make a text grow' 1 'answers: tokenizer: makes a text more than 64 times as long' \
	short tokenize --model answers --decode answers.h5 -o no.txt
ok 'the longest decomposition is allowed' \
	sh -c 'tokenize --model longest long-letters | tokenize --model longest --decode | cmp - decomposed'
no 'a pattern that PCRE2 refuses' 1 "pattern: tokenizer: PCRE2 refuses the pattern 'a.b': at byte 3: missing" \
	tokenize --model pattern mixed -o no.h5
no 'an id beyond the vocabulary' 1 'id 2147483646 is not below the 1000' tokenize --model huge mixed -o no.h5
no 'two tokens with one id' 1 "two tokens have the id 5, '.*' and '<x>'" tokenize --model twice mixed -o no.h5
ok 'errors leave no file' sh -c '[ ! -e no.h5 ] && [ ! -e no.txt ] && [ -z "$(find . -name ".ptq*")" ]'
model-import -q "$top/tests/tiny" -o tiny.h5
printf 'once on\n' >text
tokenize --model tiny.h5 text -o of-file.h5
tokenize --model "$top/tests/tiny" text -o of-folder.h5
ok 'a folder and the model imported from it: the same ids, bytes, attributes' \
	sh -c 'h5diff of-file.h5 of-folder.h5 /tokens && h5diff of-file.h5 of-folder.h5 /bytes'
is '... and the same text' \
	"$(tokenize --model tiny.h5 --decode of-folder.h5)" '▁ once ▁ on <0x0A>'	# the tokenizer has no decoder
done_testing
