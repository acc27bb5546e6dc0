#!/bin/sh
# The same bytes from every tool: again, with any number of threads, whichever kernels run, but for tiles.
# PTQ_CPU picks our kernels; BLAS keeps its own.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

printf 'It was a bright cold day in April, and the clocks were striking thirteen.\n' >text

# run FOLDER THREADS
run() (
	mkdir -p "$1" && cd "$1" || exit 1
	j="-q -j $2"
	model-import $j "$top/data/prose" -o model.h5 &&
	tokenize $j --bytes ../text -o text.h5 &&
	sample-tokens $j --length 1020 --ctx 256 --seed 1 model.h5 -o tokens.h5 &&
	hessian-accum $j --tokens tokens.h5 --ctx 256 --convention bos model.h5 -o hess.h5 &&
	gar-order $j hess.h5 -o order.h5 &&
	dpq-run $j --compensate none model.h5 -o rtn.h5 &&
	dpq-run $j --hessian hess.h5 --order order.h5 --scale-search minmax model.h5 -o gptq.h5 &&
	dpq-run $j --hessian hess.h5 --group 64 --compute e4m3fn --recipe paper <model.h5 >dpq.h5 &&
	eval-ppl $j --tokens tokens.h5 --ctx 256 --convention bos dpq.h5 >ppl &&
	eval-ppl $j --tokens tokens.h5 --ctx 256 --convention bos --reference model.h5 dpq.h5 -o against.h5 >against &&
	tensor-stats $j dpq.h5 >stats &&
	tensor-diff $j --reference model.h5 --hessian hess.h5 dpq.h5 >changes &&
	exmy-pack $j rtn.h5 -o packed.h5 &&
	hadamard-rotate $j --check model.h5 -o rotated.h5 &&
	rms-suppress $j rotated.h5 -o split.h5 &&
	exmy-sweep $j --formats e2m2,int5 --sigma 0.1,0.2 --monte-carlo 1000 model.h5 -o sweep.h5
)
same() { for f in first/*; do cmp "$f" "$1/${f##*/}" || return 1; done; }

ok 'every tool runs' run first 2
for j in 2 1 3; do
	ok "-j $j after -j 2" run again $j
	ok "-j $j gives the same bytes" same again
	rm -rf again
done
if grep -q '^flags.* amx_tile' /proc/cpuinfo 2>/dev/null; then
	rm -rf first
	export PTQ_CPU=avx512
	ok 'every tool runs without tiles' run first 2
fi
for c in plain avx2 avx512; do
	case $c in plain) flag=flags ;; avx2) flag='flags.* avx2' ;; avx512) flag='flags.* avx512f .*avx512bw' ;; esac
	if grep -Eq "^$flag" /proc/cpuinfo 2>/dev/null; then
		export PTQ_CPU=$c
		ok "$c kernels" run $c 2
		ok "$c kernels give the same bytes" same $c
	else skip "$c kernels" "the processor has none"; fi
done
unset PTQ_CPU
for j in 1 2 3; do
	hessian-accum -q -j $j --compute-type bf16 --tokens first/tokens.h5 --ctx 256 first/model.h5 -o bf16-$j.h5
	eval-ppl -q -j $j --compute-type bf16 --tokens first/tokens.h5 --ctx 256 first/rtn.h5 --reference first/model.h5 >bf16-$j
done
ok 'bf16: the same Hessians for any -j' eval 'cmp bf16-1.h5 bf16-2.h5 && cmp bf16-1.h5 bf16-3.h5'
ok 'bf16: the same likelihood and divergence for any -j' eval 'cmp bf16-1 bf16-2 && cmp bf16-1 bf16-3'
no 'unknown kernels' 2 "PTQ_CPU: 'sse' is none of plain, avx2, avx512, amx" env PTQ_CPU=sse dpq-run
done_testing
