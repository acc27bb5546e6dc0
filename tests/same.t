#!/bin/sh
# same.t -- the promises of docs/decisions.md (Processors): the same bytes for any -j and under several kernels
# Filters write the same bytes under all kernels except amx. Numbers that kernels sum in different orders are as near to
# each other as the bounds of their products allow. PTQ_CPU selects the kernels of the project; BLAS selects its own.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

printf 'It was a bright cold day in April, and the clocks were striking thirteen.\n' >text

# run FOLDER THREADS: results with one order of sums; tokens are therefore sampled from 32-bit weights
run() (
	mkdir -p "$1" && cd "$1" || exit 1
	j="-q -j $2"
	model-import $j "$top/data/prose" -o model.h5 &&
	tokenize $j --bytes ../text -o text.h5 &&
	hadamard-rotate $j --check --dtype f32 model.h5 -o rotated.h5 &&
	sample-tokens $j --length 1020 --ctx 256 --seed 1 rotated.h5 -o tokens.h5 &&
	hessian-accum $j --tokens tokens.h5 --ctx 256 --convention bos model.h5 -o hess.h5 &&
	gar-order $j hess.h5 -o order.h5 &&
	dpq-run $j --compensate none model.h5 -o rtn.h5 &&
	dpq-run $j --hessian hess.h5 --order order.h5 --scale-search minmax model.h5 -o gptq.h5 &&
	dpq-run $j --hessian hess.h5 --group 64 --compute e4m3fn --recipe paper <model.h5 >dpq.h5 &&
	eval-ppl $j --tokens tokens.h5 --ctx 256 --convention bos gptq.h5 >ppl &&
	eval-ppl $j --tokens tokens.h5 --ctx 256 --convention bos --reference model.h5 gptq.h5 -o against.h5 >against &&
	tensor-stats $j dpq.h5 >stats &&
	tensor-diff $j --reference model.h5 --hessian hess.h5 dpq.h5 >changes &&
	exmy-pack $j rtn.h5 -o packed.h5 &&
	rms-suppress $j rotated.h5 -o split.h5 &&
	exmy-sweep $j --formats e2m2,int5 --sigma 0.1,0.2 --monte-carlo 1000 model.h5 -o sweep.h5
)
# Results with several orders of sums: inputs rounded to FP8 or to integers, integers also in the last block alone
# (late), bf16, and products of packed words with few rows. Each kind is a file in models/.
kinds='fp8 int8 late bf16 packed'
models() (
	mkdir -p models && cd models || exit 1
	from=../first
	cp $from/tokens.h5 .. && cp $from/dpq.h5 fp8.h5 && cp $from/rtn.h5 bf16.h5 && cp $from/packed.h5 . &&
	msq-calib -q --act-format int8 --act-mode dynamic-token $from/rtn.h5 -o int8.h5 &&
	dpq-run -q --compensate none --storage int8 $from/model.h5 -o late.h5 &&
	msq-calib -q --act-format int8 --act-mode dynamic-token --layers 'model/layers/7/*' late.h5 -o late.h5 &&
	sample-tokens -q --length 15 --ctx 16 --seed 2 $from/rotated.h5 -o ../few.h5
)
# numbers FOLDER THREADS KIND...: the nll of each target
numbers() (
	mkdir -p "$1" && cd "$1" || exit 1
	j="-q -j $2"
	shift 2
	for kind; do
		case $kind in
		bf16*) set -- --tokens ../tokens.h5 --ctx 256 --compute-type bf16 ;;
		packed*) set -- --tokens ../few.h5 --ctx 16 ;;
		*) set -- --tokens ../tokens.h5 --ctx 256 ;;
		esac
		eval-ppl $j --convention bos "$@" "../models/$kind.h5" -o "$kind.h5" >"$kind" || exit 1
	done
)
# The error of a row of products is at most γ = (2·in + 8)·2⁻²⁴ of the magnitudes of its terms (the largest factors of
# product_rows; tests/product.c checks each row against its own bound). The row is thus the exact result of terms that
# are changed by up to γ of themselves. No bound of the nll follows: an input next to a tie may be rounded the other
# way, and then everything after it changes. So the effect of such changes is measured: the weights of norms, and with
# them the inputs of all layers, are changed by γ, up or down at random. Each of two kernels may be as far from the
# exact nll as these models are, and the two twice as far from each other, by the triangle inequality of the root of the
# mean square over targets.
moves='1 2 3 4'
same() { for f in "$1"/*; do cmp "$f" "$2/${f##*/}" || return 1; done; }

ok 'every tool runs' run first 2
ok '... and makes models whose sums have several orders' models
# shellcheck disable=SC2086
ok '... and their numbers' numbers numbers 2 $kinds
for j in 2 1 3; do
	ok "-j $j after -j 2" run again $j
	# shellcheck disable=SC2086
	ok '... and the numbers' numbers again-numbers $j $kinds
	ok "-j $j gives the same bytes" same first again
	ok '... and the same numbers' same numbers again-numbers
	rm -rf again again-numbers
done
py move "$kinds" "$moves"
# shellcheck disable=SC2046
ok 'numbers of changed inputs' numbers numbers 2 $(for k in $kinds; do for i in $moves; do echo "$k-$i"; done; done)
if grep -q '^flags.* amx_tile' /proc/cpuinfo 2>/dev/null; then
	rm -rf first
	export PTQ_CPU=avx512
	ok 'every tool runs without tiles' run first 2
fi
for c in plain avx2 avx512 amx; do
	case $c in plain) flag=flags ;; avx2) flag='flags.* avx2' ;; avx512) flag='flags.* avx512f .*avx512bw' ;; amx) \
		flag='flags.* amx_tile' ;; esac
	if ! grep -Eq "^$flag" /proc/cpuinfo 2>/dev/null; then skip "$c kernels" 'the processor has none'; continue; fi
	export PTQ_CPU=$c
	if [ $c != amx ]; then
		ok "$c kernels" run $c 2
		ok "$c kernels give the same bytes" same first $c
	fi
	# shellcheck disable=SC2086
	ok "$c kernels: numbers" numbers $c-numbers 2 $kinds
	for k in $kinds; do
		ok "... $k, as near as changed inputs" py near $c-numbers "$k" "$moves"
		grep '^# ' ok.out
	done
done
unset PTQ_CPU
for j in 1 2 3; do
	hessian-accum -q -j $j --compute-type bf16 --tokens tokens.h5 --ctx 256 first/model.h5 -o bf16-$j.h5
done
ok 'bf16: the same Hessians for any -j' eval 'cmp bf16-1.h5 bf16-2.h5 && cmp bf16-1.h5 bf16-3.h5'
no 'unknown kernels' 2 "PTQ_CPU: 'sse' is not one of plain, avx2, avx512, amx" env PTQ_CPU=sse dpq-run
done_testing
