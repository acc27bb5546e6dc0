#!/bin/sh
# tensor-info.t -- what a file is: facts from h5py, files and streams, data that must not be read
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model-import -q "$top/tests/tiny" -o model.h5
sample-tokens -q --length 64 --ctx 8 --seed 1 model.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 --limit 40 model.h5 -o hessian.h5
dpq-run -q --group 4 --storage int4 --scale-dtype f16 --act-format int8 --act-mode static-tensor --hessian hessian.h5 \
	model.h5 -o gptq.h5
exmy-pack -q gptq.h5 -o packed.h5
fbq-run -q --group 4 --rank 2 --steps 2 --layers '*/0/*' --hessian hessian.h5 model.h5 -o branch.h5
info() { tensor-info --json "$1" >said; }
line() { awk -v name="$1" '$1 == name { print $2 }' "$2"; }	# line NAME FILE: the value of a fact

# models, against h5py and tensor-stats
for f in model gptq packed branch; do
	info $f.h5
	ok "$f: sizes, parameters, layers by format" py model $f.h5 said
	ok "$f: histories" py history $f.h5 said
	tensor-info $f.h5 >text
	is "$f: bits per weight as of tensor-stats" "$(line bits_per_weight text)" \
		"$(tensor-stats -q $f.h5 | awk -F '\t' '$1 == "all" { print $7 }')"
done
ok 'branches of low rank' py branches said
tensor-info gptq.h5 >text
is 'a line for each fact' "$(line kind text) $(line stored text) $(line class text)" 'model file LlamaForCausalLM'
is 'a table of formats' "$(awk '$4 == "blocks" { $1 = $2 = $3 = ""; print }' text | xargs)" \
	'blocks int4 4 codes f16 none int8 static-tensor act_scale'
commands() { sed -n "/^$1\$/,/^\$/s/^  \([a-z-]*\) .*/\1/p" text | xargs; }
is 'the history, oldest first' "$(commands history)" 'model-import dpq-run'
is 'the history of the Hessians' "$(commands 'history of hessian')" 'model-import hessian-accum'
is 'the ids of the calibration' "$(sed -n '/^calibration$/,/^$/p' text | awk 'NR == 3 { print $2, $3 }')" '0 40'
ok 'the routers of experts have a row' sh -c "tensor-info $top/tests/ref/mixtral.h5 | grep -q ' routers  *f32'"
ok 'an encoder' sh -c "tensor-info $top/tests/images/llava.h5 | grep -q '^encoder_hidden  *768\$'"
for f in llama-gqa:no:no gemma:no:no gemma2:yes:no gemma3:yes:yes qwen3-window:no:yes opt:no:no opt-post:yes:no; do
	tensor-info "$top/tests/ref/${f%%:*}.h5" >text
	is "${f%%:*}: norms after branches, of queries and keys" \
		"$(line norms_after_branches text):$(line query_key_norms text)" "${f#*:}"
done
hadamard-rotate -q --seed 1 "$top/tests/ref/llama-gqa.h5" | rms-suppress -q -o split.h5; info split.h5
ok 'rotations and split columns' py splits split.h5 said

# streams, and streams that are kept in files
dpq-run -q --compensate none --group 4 model.h5 -o rtn.h5
dpq-run -q --compensate none --group 4 model.h5 | tee kept.h5 | tensor-info --json >stream
tensor-info --json rtn.h5 >file; tensor-info --json kept.h5 >kept
ok 'a pipe, and the file that tee keeps' cmp stream kept
is '... differ from a file only in how they are stored' \
	"$(sed 's/"stored": "stream"/"stored": "file"/' kept)" "$(cat file)"
tensor-join -q kept.h5 -o joined.h5; tensor-info --json joined.h5 >joined
ok 'tensor-join makes one file of a kept stream' py joined
hessian-accum -q --tokens tokens.h5 --ctx 8 model.h5 | cat >kept-hessian.h5
tensor-info kept-hessian.h5 >text; is 'a kept stream of Hessians' "$(line stored text)" stream
hessian-accum -q kept-hessian.h5 -o h.h5; tensor-info h.h5 >text
is 'hessian-accum makes one file of it' "$(line stored text)" file
is 'standard input that is a file' "$(tensor-info --json <rtn.h5)" "$(cat file)"
size=$(wc -c <kept.h5); head -c $((size / 2)) kept.h5 >cut.h5
no 'a cut stream' 1 'cut.h5: (is cut short|the stream ends after)' tensor-info cut.h5
no '... on a pipe' 1 '<stdin>: (is cut short|the stream ends after)' sh -c 'cat cut.h5 | tensor-info'

# other kinds
info tokens.h5; ok 'tokens' py tokens tokens.h5 said
py reorder; info mixed.h5; ok 'tokens in sequences, reordered' py tokens mixed.h5 said
info hessian.h5; ok 'Hessians' py hessian hessian.h5 said
gar-order -q --group 4 hessian.h5 -o order.h5; info order.h5; ok 'an order' py history order.h5 said
is '... layers of all blocks in one row' "$(tensor-info order.h5 | grep -c q_proj)" 1
eval-ppl -q --tokens tokens.h5 --ctx 8 rtn.h5 -o record.h5 >numbers; tensor-info record.h5 >text
is 'a record: its numbers' "$(line ppl text)" "$(awk '$1 == "ppl" { printf "%.6g", $2 }' numbers)"
is '... and its tool' "$(line made_by text)" eval-ppl

# data are not read
py files; py large
ok 'invalid codes, scales and weights are not read' sh -c "tensor-info codes.h5 | grep -q ' int4  *8  *codes'"
no '... by tensor-stats they are' 1 'holds code 255' tensor-stats codes.h5
timeout 30 tensor-info large.h5 >text
is '256 GiB of weights' "$(line parameters text)" 68719476736
tensor-info chunked.h5 >text; is 'data that cannot be decompressed' "$(line parameters text)" 6250000
no '... by tensor-stats they are read' 1 'chunked.h5: /a/weight: cannot be read' tensor-stats chunked.h5

# unknown kinds, and files of other programs
info other.h5; ok 'an unknown kind: attributes and datasets' py other said
is '... control characters are not printed' "$(tensor-info other.h5 | grep -c "$(printf '\033')")" 0
tensor-info plain.h5 >text
is 'an HDF5 file without a kind' "$(line kind text) $(grep -c '/x  *f64  *1 2 1 2 1 2 1' text)" '- 1'
tensor-info empty.h5 >text; is 'a file without contents' "$(line kind text)" -
tensor-info class.h5 >text; is 'a class that is not known' "$(line class text)" rwkv
tensor-info latin.h5 >text; is 'an attribute that is not UTF-8' "$(sed -n 's/^  key  *//p' text)" '?t?'
tensor-info version.h5 >text; is 'another version of the format' "$(line version text)" 2
tensor-info bare.h5 >text; is 'tokens made by hand: their digest' "$(line tokens_sha256 text | wc -c)" 65

# names, numbers and texts of every form
py odd
info odd.h5; tensor-info odd.h5 >text
value() { py "print(facts('said')$1)"; }
attribute() { value "['attributes']['$1']"; }
is 'names that are not UTF-8, and become equal' "$(grep '^  ?t?' text | xargs)" '?t? 1 ?t? (10) 2'
is 'numbers that are not finite' "$(attribute inf) $(attribute nan)" 'None None'
is '... large numbers' "$(attribute whole) $(attribute huge)" '-9007199254740991 1e+300'
is '... integers that a double does not hold' "$(attribute low) $(attribute high)" \
	'-9223372036854775807 18446744073709551615'
is '... large extents' "$(value '["datasets"][0]["shape"]')" '[1152921504606846977]'
is 'a calibration of another program' "$(attribute calibration) $(attribute evaluation)" 'of a sensor 3.5'
is 'control characters and marks of direction' "$(sed -n 's/^  e?s?  *//p' text)" 'a?b?c?d?é世'
is '... in the name of a history' "$(grep -c '^history of ?$' text)" 1
info half.h5
is 'a calibration with another line' "$(attribute calibration | tail -n 1) $(value '["calibration"][0]["end"]')" \
	'another line 40'
info numbers.h5; tensor-info numbers.h5 >text
is 'numbers that are no counts' "$(value '["vocab"]') $(value '["bos_id"]') $(line newline text)" 'None None -'
info vast.h5; is 'more parameters than an integer holds' "$(value '["parameters"]')" None
is 'many datasets, in time' "$(timeout 20 tensor-info many.h5 | grep -c ' /x')" 50001

# mistakes
no 'tokens without tokens' 1 'no-tokens.h5: /tokens: is missing' tensor-info no-tokens.h5
no 'a layer with two weights' 1 'two.h5: /a: has both weight and codes' tensor-info two.h5
no 'extents that do not fit' 1 'extents.h5: /a/bias: has shape \[3\], expected \[2\]' tensor-info extents.h5
no 'a count that is no number' 1 'counts.h5: /a/count: has an unsupported type' tensor-info counts.h5
no 'no HDF5 file' 1 'tensor-info.t: is not an HDF5 file' tensor-info "$top/tests/tensor-info.t"
printf GGUF >file.gguf; makes='model-import makes a model of a Hugging Face folder or a GGUF file'
no 'a GGUF file' 1 "file.gguf: is not an HDF5 file; $makes" tensor-info file.gguf
no 'a folder' 1 "tests: is a folder, expected a file; $makes" tensor-info "$top/tests"
no 'no such file' 1 'nothing.h5: cannot open' tensor-info nothing.h5
no 'two files' 2 'one operand too many' tensor-info model.h5 tokens.h5
head -c 3000 model.h5 >short.h5; no 'a file cut short' 1 'short.h5: is cut short' tensor-info short.h5
no 'a full disk' 1 'cannot write' sh -c 'tensor-info model.h5 >/dev/full'
ok '-o writes the text' sh -c 'tensor-info model.h5 -o out && tensor-info model.h5 | cmp - out'
cp model.h5 before.h5
no '-o the input' 1 'model.h5: is an input' tensor-info model.h5 -o model.h5
ok '... which is unchanged' cmp model.h5 before.h5
done_testing
