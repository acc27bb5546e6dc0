#!/bin/sh
# Packed checkpoints, written in numpy from the description of their formats, become codes and parameters bit for bit;
# those that model-export writes, too. What their own packages write is tested by `make check-doors`.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! py 'h5py.File' 2>/dev/null; then
	skip 'packed checkpoints' 'no h5py'
	done_testing
fi
ref=$top/tests/ref
for m in llama-gqa phi3-window neox-parallel gpt2; do py plain "$ref/$m.h5" $m.h5; done
model-export -q -o plain llama-gqa.h5
# quiet COMMAND...: it says nothing but that a model has no tokenizer
quiet() { "$@" 2>said && ! grep -v 'has no tokenizer' said; }

# Written by hand.
for s in int2 int3 int4 int5 int6 int7 int8 uint2 uint3 uint4 uint5 uint6 uint7 uint8 old3 old4 old5 old6 old7 \
	bytes channel half order w8 w8a8 w8a8s w8u w4a8 fp8 fp8d fp8s block mxfp4 nvfp4; do
	py make plain $s $s
	ok "$s: imports" quiet model-import $s -o $s.h5
	ok "$s: codes and parameters bit for bit" py holds $s $s.h5
done
py make plain mixed uint4:q_proj w8a8:down_proj fp8:gate int4
ok 'several groups: imports' quiet model-import mixed -o mixed.h5
ok '... bit for bit' py holds mixed mixed.h5

# differ FILE FILE: whether weights differ, and whether there are any
differ() {
	tensor-diff -q -r "$1" "$2" 2>/dev/null | awk -F'\t' 'NR > 1 && $3 != 0 && $3 != "-" { bad = 1 }
		END { print (bad ? "yes" : "no") " of " (NR > 1 ? "some" : "none") }'
}
# There and back. back NAME OPTION...: no value differs
back() {
	name=$1; shift
	dpq-run -q --compensate none "$@" -o "$name.h5"
	rm -rf back
	model-export -q --to compressed-tensors -o back "$name.h5" && quiet model-import back -o back.h5
	is "$name there and back: no value differs" "$(differ "$name.h5" back.h5)" 'no of some'
	model-export -q --to compressed-tensors -o again back.h5
	ok '... and the same folder again' diff -r back again
	rm -rf again
}
for f in int3 int4 int8 uint3 uint4; do back $f-4 --storage $f -g 4 llama-gqa.h5; done
back fp8-channel --storage e4m3fn -g channel llama-gqa.h5
back w8a8-token --storage int8 -g channel --act-format int8 --act-mode dynamic-token llama-gqa.h5
back nvfp4-16 --storage nvfp4 -g 16 --layers '!*/down_proj' llama-gqa.h5
back mxfp4-32 --storage mxfp4 -g 32 --layers '!*/down_proj' llama-gqa.h5
for m in phi3-window neox-parallel; do
	back $m-int4 --storage int4 -g 4 $m.h5
	back $m-fp8 --storage e4m3fn -g tensor $m.h5
done

# With the basis of the original, its Hessians judge and repair what others quantized.
model-import -q plain -o base.h5 2>said
judged() { tensor-diff -q -r base.h5 --hessian hessian.h5 "$1" 2>/dev/null | cut -f1,3-; }
sample-tokens -q --length 256 --ctx 16 base.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 16 base.h5 -o hessian.h5
dpq-run -q --compensate none --storage int4 -g 4 base.h5 -o int4.h5
model-export -q --to compressed-tensors -o theirs int4.h5
ok 'another basis is one of its own' sh -c 'model-import -q theirs -o own.h5 2>/dev/null &&
	! tensor-diff -q -r base.h5 --hessian hessian.h5 own.h5 >/dev/null 2>&1'
ok '--basis takes codes' quiet model-import -q --basis base.h5 --report far.tsv theirs -o theirs.h5
is '... and says how far each layer is' "$(awk -F'\t' '$2 > 0 && $2 < .5' far.tsv | grep -c _proj)" 14
is '... their output error is that of the model they were' \
	"$(judged theirs.h5)" "$(judged int4.h5)"
ok '... a branch repairs them' fbq-run -q --method lowrank --rank 4 --reference base.h5 --hessian hessian.h5 \
	theirs.h5 -o repaired.h5
no 'a checkpoint of other weights' 1 'its relative difference from that of base.h5 is .* expected less than 0.5' \
	model-import -q --basis base.h5 int4 -o no.h5
done_testing
