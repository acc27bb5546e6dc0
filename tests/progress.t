#!/bin/sh
# progress.t -- the line of progress: on a terminal only, with the time left once a rate is known
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
model-import -q "$top/data/prose" -o model.h5
if py terminal_there 2>/dev/null; then
	LATER=2 ok 'the time left, after two seconds' py terminal 'drawing [0-9]+/1000000, [0-9:]+ left' \
		sample-tokens --length 1000000 --ctx 64 model.h5 -o x.h5
	sample-tokens -q --length 1020 --ctx 256 model.h5 -o tokens.h5
	ok 'progress over windows of all blocks' \
		py terminal 'model/layers [0-9]+/32' eval-ppl --tokens tokens.h5 --ctx 256 --convention bos model.h5
	ok 'progress over layers of parts' \
		py terminal '/model/layers/[0-9]+/.* 0/7, part [0-9]+/11' dpq-run --compensate none model.h5 -o x.h5
	no 'no progress with -q' 1 '.' py terminal '.' dpq-run -q --compensate none --layers '*/0/*' model.h5 -o x.h5
else
	for what in 'the time left, after two seconds' 'progress over windows of all blocks' \
		'progress over layers of parts' 'no progress with -q'; do
		skip "$what" 'no pseudo-terminal can be opened'
	done
fi
is 'no progress if standard error is not a terminal' \
	"$(dpq-run --compensate none model.h5 -o x.h5 2>&1 | grep -c "part$(printf '\r')\|left")" 0
done_testing
