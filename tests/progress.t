#!/bin/sh
# The line of progress: on a terminal only, with the time that is left once there is a rate to tell it by.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
model-import -q "$top/data/prose" -o model.h5
cat >terminal.py <<'PY'
# runs a command with its standard error on a terminal, until it has said what is waited for
import os, re, signal, subprocess, sys, time
wanted, command = sys.argv[1], sys.argv[2:]
mine, its = os.openpty()
child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=its)
os.close(its)
said, begin, found = b"", time.time(), None
while time.time() - begin < 300 and not found:
    try: got = os.read(mine, 4096)
    except OSError: got = b""
    if not got: break
    said += got; found = re.search(wanted.encode(), said)
child.send_signal(signal.SIGTERM); child.wait()
if not found or time.time() - begin < float(os.environ.get("LATER", 0)): sys.exit(f"{time.time() - begin} s: {said[-300:]!r}")
PY
if py -c 'import os; os.openpty()' 2>/dev/null; then
	LATER=2 ok 'the time that is left, after two seconds' py terminal.py 'drawing [0-9]+/1000000, [0-9:]+ left' sample-tokens --length 1000000 --ctx 64 model.h5 -o x.h5
	sample-tokens -q --length 1020 --ctx 256 model.h5 -o tokens.h5
	ok 'windows of all blocks' py terminal.py 'model/layers [0-9]+/32' eval-ppl --tokens tokens.h5 --ctx 256 --convention bos model.h5
	ok 'layers of parts' py terminal.py '/model/layers/[0-9]+/.* 0/7, part [0-9]+/11' dpq-run --compensate none model.h5 -o x.h5
	no 'none under -q' 1 '.' py terminal.py '.' dpq-run -q --compensate none --layers '*/0/*' model.h5 -o x.h5
else
	for what in 'the time that is left, after two seconds' 'windows of all blocks' 'layers of parts' 'none under -q'; do skip "$what" 'no pseudo-terminal is to be had'; done
fi
is 'none where standard error is no terminal' "$(dpq-run --compensate none model.h5 -o x.h5 2>&1 | grep -c "part$(printf '\r')\|left")" 0
done_testing
