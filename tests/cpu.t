#!/bin/sh
# The same bytes, whichever kernels run. PTQ_CPU picks ours; BLAS keeps its own.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export PTQ_CPU=plain

run() {
	PTQ_CPU=$1; mkdir -p "$1"
	model-import "$top/data/prose" -o "$1/model.h5" &&
	sample-tokens --tokens 2040 --ctx 256 --seed 1 "$1/model.h5" -o "$1/tokens.h5" &&
	hessian-accum --tokens "$1/tokens.h5" --ctx 256 --convention bos "$1/model.h5" -o "$1/hess.h5" &&
	gar-order "$1/hess.h5" -o "$1/order.h5" &&
	for f in uint4 int5 e4m3fn; do
		dpq-run -q --compensate none --storage "$f" "$1/model.h5" -o "$1/rtn-$f.h5" || return 1
	done &&
	for search in minmax mse; do
		dpq-run -q --hessian "$1/hess.h5" --order "$1/order.h5" --scale-search $search "$1/model.h5" -o "$1/gptq-$search.h5" &&
		dpq-run -q --hessian "$1/hess.h5" --compute e4m3fn --recipe paper --scale-search $search "$1/model.h5" \
			-o "$1/dpq-$search.h5" || return 1
	done &&
	eval-ppl --tokens "$1/tokens.h5" --ctx 256 --convention bos "$1/dpq-mse.h5" >"$1/ppl"
}

ok 'plain kernels' run plain
for c in avx2 avx512; do
	if [ $c = avx512 ]; then flag='avx512f.*avx512bw'; else flag=$c; fi
	if grep -Eq "^flags.* $flag" /proc/cpuinfo 2>/dev/null; then
		ok "$c kernels" run $c
		for f in plain/*; do ok "$c: ${f#plain/} as with plain kernels" cmp "$f" "$c/${f#plain/}"; done
	else skip "$c kernels" "the processor has none"; fi
done
no 'unknown kernels' 2 "PTQ_CPU: 'sse' is none of plain, avx2, avx512" env PTQ_CPU=sse dpq-run
done_testing
