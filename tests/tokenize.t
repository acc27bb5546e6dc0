#!/bin/sh
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1

# get FILE: ids, bytes and the attributes, as text
get() { py -c '
import h5py, sys
f = h5py.File(sys.argv[1])
print(f["tokens"][...].tolist(), f["bytes"][...].tolist(), *(int(f["tokens"].attrs[a]) for a in ("bos_id", "add_bos", "vocab")), f["tokens"].dtype, f["bytes"].dtype)' "$1"; }
h5py=
py -c 'import h5py' 2>/dev/null && h5py=yes

printf 'a\000\377' >text
tokenize --bytes text -o bytes.h5
if [ "$h5py" ]; then
	is 'bytes are their own ids' "$(get bytes.h5)" '[97, 0, 255] [1, 1, 1] 0 1 256 int32 uint16'
else
	skip 'bytes are their own ids' 'no h5py'
fi
tokenize --bytes <text >stdout.h5
ok 'reads standard input, writes a file there' cmp bytes.h5 stdout.h5
: >empty
no 'an empty text' 1 'tokenize: empty: the text is empty' tokenize --bytes empty -o no.h5
ok 'leaves nothing behind' test ! -e no.h5
no 'empty standard input' 1 '<stdin>: the text is empty' tokenize --bytes -o no.h5
no 'no such text' 1 'missing: cannot open: No such file' tokenize --bytes missing -o no.h5
no 'a folder' 1 'is a folder' tokenize --bytes . -o no.h5
no 'neither --model nor --bytes' 2 'exactly one of --model and --bytes' tokenize text -o no.h5
no 'both --model and --bytes' 2 'exactly one of --model and --bytes' tokenize --bytes --model x.h5 text -o no.h5
warns '--special without a model' 'without effect here: --special .--bytes.' tokenize --bytes --special text -o special.h5
no 'no such model' 1 'missing.h5' tokenize --model missing.h5 text -o no.h5
no 'tokens are no model' 1 'bytes.h5' tokenize --model bytes.h5 text -o no.h5

if [ "$h5py" ] && [ "$shared" ]; then
	model-import "$shared/stories260K" -o model.h5
	printf 'Once upon <s>\n' | tokenize --model model.h5 -o plain.h5
	is 'ids, bytes, attributes' "$(get plain.h5)" \
		'[403, 407, 410, 504, 419, 505, 13] [4, 5, 1, 1, 1, 1, 1] 1 1 512 int32 uint16'
	printf 'Once upon <s>\n' | tokenize --special --model model.h5 -o special.h5
	is 'special tokens on request' "$(get special.h5)" '[403, 407, 410, 1, 410, 13] [4, 5, 1, 3, 0, 1] 1 1 512 int32 uint16'
	tokenize --model model.h5 "$shared/tinystories.txt" -o all.h5
	# crc of the ids that tokenizers 0.23.3 gives, as little-endian int32
	is 'tinystories, all of it' "$(py -c '
import h5py, zlib
f = h5py.File("all.h5")
print(len(f["tokens"]), zlib.crc32(f["tokens"][...].tobytes()), int(f["bytes"][...].sum()))')" '531907 2935011348 1048576'
	model-import "$shared/stories260K" | cat >model.stream
	tokenize --model model.stream "$shared/tinystories.txt" -o from-stream.h5
	ok 'a model as a stream gives the same' cmp all.h5 from-stream.h5
	ok 'takes its tokenizer from the model' sh -c 'h5dump -a history:model all.h5 | grep -q "model-import"'
	py - <<-'PY'
		import h5py, json
		def make(path, tokenizer, **config):
		    with h5py.File('model.h5') as old, h5py.File(path, 'w') as new:
		        for k, v in old.attrs.items(): new.attrs[k] = v
		        c = json.loads(old['config'][()]) | config
		        new['config'] = json.dumps(c)
		        if tokenizer: new['tokenizer'] = tokenizer
		text = h5py.File('model.h5')['tokenizer'][()].decode()
		make('none.h5', None)
		make('narrow.h5', text, vocab_size=400)
		make('broken.h5', text[:1000])
		j = json.loads(text); j['post_processor'] = None
		make('no-bos.h5', json.dumps(j))
	PY
	no 'a model without a tokenizer' 1 'none.h5: /tokenizer: is not there' tokenize --model none.h5 text -o no.h5
	no 'ids beyond the vocabulary' 1 'is not below the 400' tokenize --model narrow.h5 "$shared/tinystories.txt" -o no.h5
	no 'a damaged tokenizer' 1 'broken.h5: /tokenizer:[0-9]*: not valid JSON' tokenize --model broken.h5 text -o no.h5
	tokenize --model no-bos.h5 text -o no-bos-tokens.h5
	is 'the BOS of the config where the tokenizer adds none' "$(get no-bos-tokens.h5)" '[261, 3, 242, 194, 192] [1, 1, 1, 0, 0] 1 0 512 int32 uint16'
else
	skip 'ids by a model' 'no h5py or no shared data'
fi
done_testing
