#!/bin/sh
# hessian-models.t -- Hessians of every linear layer of every architecture
# They are compared with those of the inputs in transformers (tests/ref/hessians.py).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

/usr/bin/python3 -B "$top/tests/ref/hessians.py" "$top/tests/ref" >models
for f in "$top"/tests/ref/*.h5; do
	f=$(basename "$f" .h5)
	case $f in
	hessians | checkpoints | conventions | fp4) ;;
	*) is "as transformers: $f" "$(sed -n "s/^$f	//p" models)" same ;;
	esac
done
done_testing
