#!/bin/sh
# reader.t -- the reader for Python (docs/ptqtools.py), compared with the tools
#
# Values of every format that the tools list; weights of every format and form of codes, bit for bit as model-export
# writes them; errors of files that cannot be read; the example of its page.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! has_h5py; then
	skip 'the reader for Python' 'no h5py'
	done_testing
fi

# The values of every format.
exmy-sweep --json --table values --formats "$(py formats)" >values.json
ok 'values of every format' py same_values

# A layer of every format, with every type of scales, in groups of each kind; all compute formats; branches, split
# columns.
py make "$top/tests/ref/llama-gqa.h5"
sample-tokens -q --length 320 --ctx 32 model.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 32 model.h5 -o hessian.h5
dpq() { dpq-run -q --hessian hessian.h5 "$@" model.h5 2>/dev/null; }
dpq --reorder full --plan storage.plan -o codes.h5
dpq --plan compute.plan | cat >stream.h5
tensor-join -q stream.h5 -o compute.h5 2>/dev/null
exmy-pack -q codes.h5 -o packed.h5
for f in bf16 nf5:8; do
	fbq-run -q --method eora --rank 3 --branch-format $f --hessian hessian.h5 --reference model.h5 codes.h5 \
		-o branch-${f%:*}.h5 2>/dev/null
done
ok 'a layer of every format, its codes from packed codes, configuration and history' py about codes.h5 packed.h5
ok 'split columns' py split compute.h5 split.h5
dpq --layer-rotation none --plan vectors.plan -o vectors.h5
for f in codes vectors branch-bf16 branch-nf5 split; do
	ok "$f: is exported" model-export -q --weights-only -o $f $f.h5
	ok "$f: the same weights, bit for bit" py same_weights $f.h5 $f
done
is 'layers as the tools list them' \
	"$(/usr/bin/python3 -B "$top/docs/ptqtools.py" packed.h5 | sed -n "s/float/f/; /layers/p" | cut -f 1-4)" \
	"$(tensor-stats -q packed.h5 | awk -F '\t' -v OFS='\t' '$1 ~ /layers/ { print $1, $5, $6, $2 }')"

ok 'members, present and absent' py members
py errors none.h5 text.h5 stream.h5 code.h5 scale.h5 mine.h5 zero.h5 group.h5 column.h5 \
	block.h5 wide.h5 >said
cat >wanted <<'E'
none.h5: [Errno 2] Unable to open file
text.h5: Unable to open file (file signature not found)
stream.h5: is a stream, of which h5py sees the first part; tensor-join makes one file of it
code.h5: /a: there is a code without a value in the grid of int4
scale.h5: /a: Unable to open object (object 'scale' doesn't exist)
mine.h5: /a: there is a code without a value in the grid of mine
zero.h5: /a: Unable to open object (object 'zero' doesn't exist)
group.h5: /a: index 4294967295 is out of bounds for axis 1 with size 2
column.h5: /a: index 4294967295 is out of bounds for axis 1 with size 3
block.h5: /a: there is a block with a scale that is infinite or NaN
wide.h5: /a: there is a code that is not a byte
E
is 'errors of files that cannot be read' "$(sed 's/^\(none.*file\) (.*/\1/; s/ synchronously//' said)" "$(cat wanted)"
ok '... but a format that the caller defines is read' py told mine.h5

# The page: its example prints the output that the page shows.
block() {	# the first block of a language
	awk -v head="\`\`\`$1" '/^```/ { fence = !fence; on = fence && $0 == head && !n++; next } on' \
		"$top/docs/python.md"
}
block sh >script; block python >example.py; block '' >expected
ln -s "$top/data" data
ok 'the example of the page runs' bash -euo pipefail script
is '... and prints the output on the page' "$(PYTHONPATH=$top/docs /usr/bin/python3 -B example.py)" "$(cat expected)"

# Blocks of GGUF, which are too long for the layers of the small model.
for f in q4_k q5_k q6_k iq4_nl; do
	dpq-run -q --compensate none --storage $f --layers '*/0/self_attn/*' model.h5 -o $f.h5
	model-export -q --weights-only -o $f $f.h5
	ok "$f: the same weights, bit for bit" py same_weights $f.h5 $f
done
py second q4_k.h5 second.h5
model-export -q --weights-only -o second second.h5
ok '... in a second precision, in a file by hand' py same_weights second.h5 second
done_testing
