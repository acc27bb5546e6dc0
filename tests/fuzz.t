#!/bin/sh
# fuzz.t -- seeds and finds of the fuzzers, unchanged and slightly changed, the same in every run
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
programs=${PTQ_BUILD:-$top/build}/fuzz
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:allocator_may_return_null=1" OMP_NUM_THREADS=1
for reader in safetensors:4000 tokenizer:4000 template:4000 part:500 gguf:3000 image:6000; do
	name=${reader%:*} runs=${reader#*:}
	set -- "$top/tests/fuzz/seeds/$name"/* "$top/tests/fuzz/finds/$name"/*
	[ -e "$top/tests/fuzz/finds/$name" ] || set -- "$top/tests/fuzz/seeds/$name"/*
	ok "$name: $# files and $runs runs" timeout 600 "$programs/$name" "$runs" "$@"
done
done_testing
