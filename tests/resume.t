#!/bin/sh
# --resume: a run that was stopped, in whatever way, goes on from its finished parts and gives the bytes of one that was
# not; what FILE.part must not be. PTQ_KILLS: at how many random moments a run is killed (6).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
py - "$top/tests/ref/llama-gqa.h5" <<'PY'
import h5py, json, numpy as np, shutil, sys
BLOCKS, r = 6, np.random.default_rng(1)
def changed(path, source, make):
    shutil.copy(source, path)
    with h5py.File(path, "r+") as f: make(f)
def deepen(f):
    c = json.loads(f["config"][()]); c["num_hidden_layers"] = BLOCKS; del f["config"]
    f["config"] = np.bytes_(json.dumps(c))
    for i in range(2, BLOCKS): f.copy(f"model/layers/{i % 2}", f"model/layers/{i}")
    for i in range(BLOCKS):
        for n in "q_proj", "v_proj": f[f"model/layers/{i}/self_attn/{n}/weight"][...] += r.standard_normal(()) / 10
changed("model.h5", sys.argv[1], deepen)
changed("other.h5", "model.h5", lambda f: f["model/layers/5/mlp/up_proj/weight"].__setitem__((0, 0), 1))
changed("nan.h5", "model.h5", lambda f: f["model/layers/4/mlp/up_proj/weight"].__setitem__((0, 0), np.nan))
with h5py.File("t.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
    d = f.create_dataset("tokens", data=r.integers(3, 61, 200).astype("i4")); d.attrs["bos_id"], d.attrs["add_bos"] = 1, 1
with h5py.File("layer.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"; f["a/weight"] = r.standard_normal((24, 100)).astype("f4")
PY
hessian-accum -q --tokens t.h5 --ctx 32 model.h5 -o h.h5; gar-order -q --group 8 h.h5 -o o.h5
hessian-accum -q --tokens t.h5 --ctx 16 model.h5 -o h2.h5; gar-order -q --group 8 --key mean h.h5 -o o2.h5
printf '*/down_proj storage=uint8\n*/o_proj keep\n' >plan; printf '*/down_proj storage=uint6\n*/o_proj keep\n' >plan2
left() { find . -name '*.part' -o -name '.ptq*' | sed 's|^\./||'; }
run() { dpq-run --hessian h.h5 --order o.h5 --group 8 --plan plan --resume "${m:-model.h5}" "$@"; }
dpq-run -q --hessian h.h5 --order o.h5 --group 8 --plan plan model.h5 -o plain.h5
run -q -o whole.h5
is 'nothing stays after the good end' "$(left)" ''
ok 'the result is that of a run without --resume' h5diff -v plain.h5 whole.h5
# everything, attributes too, in any order
cat >same.py <<'PY'
import h5py, sys
def all_of(path):
    y = {}
    def look(name, o):
        y[name] = (dict((k, str(v)) for k, v in o.attrs.items()), None if isinstance(o, h5py.Group) else (o.dtype.str, o.shape, o[()].tobytes()), o.name)
    with h5py.File(path) as f:
        look("/", f); f.visititems(look)
    return y
sys.exit(all_of(sys.argv[1]) != all_of(sys.argv[2]))
PY
ok '... attributes and all' py same.py plain.h5 whole.h5

# --- a FILE.part that is whole: the link leads nowhere, so the end of the run fails ---
ln -s nowhere/r.h5 r.h5
run -o r.h5 2>report; is 'a run that fails at its end' "$? $(tail -1 report)" '1 dpq-run: r.h5: cannot create a file beside it: No such file or directory'
sed -i '$d' report
is '... keeps its parts' "$(left)" r.h5.part
mv r.h5.part parts; rm r.h5
py - <<'PY'
raw, at = open("parts", "rb").read(), [0]
while at[-1] < len(raw): at.append(at[-1] + int.from_bytes(raw[at[-1] + 28:at[-1] + 36], "little"))
assert at[-1] == len(raw) and len(at) == 10, at
open("at", "w").write(" ".join(map(str, at)))
def zeros(name, i, n): open(name, "wb").write(raw[:at[i]] + b"\0" * n + raw[at[i] + n:])
zeros("head-first", 0, 56); zeros("head-7", 6, 56); zeros("image-last", 8, at[9] - at[8])
PY
at=$(cat at)
# shellcheck disable=SC2086
set -- $at
end=${10} last=$9 fifth=$6
again() {	# again NAME PARTS: a run with FILE.part as it is; how many parts it takes
	run -o r.h5 2>said
	is "$1: the same bytes" "$(cmp r.h5 whole.h5 2>&1)" ''
	is "$1: parts that are taken" "$(sed -n 's/.*part: \([0-9]*\) of 9 parts are there/\1/p' said)" "$2"
	is "$1: FILE.part is gone" "$(left)" ''
	rm -f r.h5
}
first() { head -c "$1" parts >r.h5.part; }
first "$end"; again 'all parts' 9
is '... the report is that of the run that made them' "$(sed 1d said)" "$(cat report)"
first "$fifth"; again 'five parts' 5
is '... the report has all layers, and the same mean' "$(sed 1d said | cut -f 1-5)" "$(cut -f 1-5 report)"
for bytes in 0 1 20 56 57; do first $bytes; again "$bytes bytes of the first part" ''; done
first $((fifth + 8)); again 'five parts and 8 bytes' 5
first $((last - 1)); again 'all but the last byte of a part' 7
first $((end - 1)); again 'all but the last byte' 8
cp head-first r.h5.part; again 'the first bytes of the first part are not there yet' ''
cp head-7 r.h5.part; again '... of the seventh' 6
cp image-last r.h5.part; again '... nothing of the last' 8
{ head -c "$fifth" parts; echo junk; } >r.h5.part; again 'junk behind five parts' 5
first "$fifth"; run -q -j 2 -o r.h5; ok 'with other threads the same bytes' cmp r.h5 whole.h5; rm r.h5
cp model.h5 elsewhere.h5; first "$fifth"; m=elsewhere.h5 again 'the model under another name and of another time' 5
first "$fifth"; run -q -o r.h5 2>said; is '-q says nothing' "$(cat said)" ''; rm r.h5
dpq-run -q --compensate none layer.h5 -o a.h5; dpq-run -q --compensate none --resume layer.h5 -o b.h5
ok 'a file that is one part' py same.py a.h5 b.h5
model-import -q "$top/tests/tiny" | cat >stream; dpq-run -q --compensate none --group 4 --resume stream -o a.h5
dpq-run -q --compensate none --group 4 stream -o b.h5; ok 'a stream in a file' py same.py a.h5 b.h5

# --- blocks that are calibrated behind those that are finished ---
sequential() { dpq-run -q --sequential --tokens t.h5 --ctx 32 --reorder gar --group 8 --resume "$1" -o "$2"; }
for name in model.h5 "$top/tests/ref/qwen2-moe.h5"; do
	rm -f s.h5; sequential "$name" sequential.h5
	ln -s nowhere/s.h5 s.h5; sequential "$name" s.h5 2>said; mv s.h5.part parts2; rm s.h5
	wrong=''
	for taken in 1 2 3; do
		py -c 'import sys
raw, at = open("parts2", "rb").read(), 0
for i in range(int(sys.argv[1])): at += int.from_bytes(raw[at + 28:at + 36], "little")
open("s.h5.part", "wb").write(raw[:at])' $taken
		sequential "$name" s.h5 && cmp -s s.h5 sequential.h5 || wrong="$wrong $taken"
		rm -f s.h5 s.h5.part
	done
	is "--sequential, $(basename "$name"): from one, two, three finished parts the same bytes" "$wrong" ''
done

# --- a run that fails ---
m=nan.h5
no 'a weight that is bad, in the fifth block' 1 'nan.h5: .*layers/4/mlp/up_proj' run -q -o bad.h5
no '... and again' 1 'nan.h5: .*layers/4/mlp/up_proj' run -q -o bad.h5
is '... what was done stays' "$(left)" bad.h5.part
m=model.h5
no '... of another model' 1 'bad.h5.part: was begun with another model than model.h5; remove it to begin anew' run -q -o bad.h5
rm bad.h5.part

# --- other options, other inputs ---
differs() {	# differs NAME PATTERN COMMAND...
	what=$1 pattern=$2; shift 2
	first "$fifth"
	no "$what" 1 "^dpq-run: r.h5.part: was begun $pattern; remove it to begin anew\$" "$@" -o r.h5
	is "... the parts stay as they were" "$(head -c "$fifth" parts | cmp - r.h5.part 2>&1)" ''
}
begun="by 'dpq-run $(cat "$top/VERSION") --group 8 plan:.*', this is 'dpq-run"
d() { dpq-run -q --resume "$@"; }
differs 'another option' "$begun .*--group 4 plan:.*'" d --hessian h.h5 --group 4 --plan plan model.h5
differs 'another plan' "$begun .*uint6.*'" d --hessian h.h5 --order o.h5 --group 8 --plan plan2 model.h5
differs 'other layers' "$begun .*layers.*'" d --hessian h.h5 --order o.h5 --group 8 --plan plan --layers '*_proj' model.h5
differs 'another Hessian' 'with another hessian than h2.h5' d --hessian h2.h5 --order o.h5 --group 8 --plan plan model.h5
differs 'another order' 'with another order than o2.h5' d --hessian h.h5 --order o2.h5 --group 8 --plan plan model.h5
differs 'no order' 'with another [a-z]* than .*' d --hessian h.h5 --group 8 --plan plan model.h5
differs 'another model, one number of which differs' 'with another model than other.h5' d --hessian h.h5 --order o.h5 --group 8 --plan plan other.h5
rm -f r.h5.part
py - <<'PY'
import h5py
open("cpu", "wb").write(open("parts", "rb").read())
raw = open("cpu", "r+b"); data = raw.read(); n = int.from_bytes(data[28:36], "little")
open("first.h5", "wb").write(data[:n])
with h5py.File("first.h5", "r+") as f: f.attrs["resume:processor"] = "abacus"
open("cpu", "wb").write(open("first.h5", "rb").read() + data[n:])
PY
cp cpu r.h5.part
warns 'another kind of processor' 'was begun on another kind of processor .abacus, this is' run -o r.h5
rm -f r.h5

# --- what FILE.part must not be ---
bad() {	# bad NAME PATTERN: FILE.part stays what it is
	cp -r r.h5.part kept
	no "FILE.part: $1" 1 "^dpq-run: r.h5.part: $2" run -q -o r.h5
	is "... it stays" "$(diff -r kept r.h5.part 2>&1)$(ls r.h5 2>/dev/null)" ''
	rm -rf r.h5.part kept
}
head -c 3000 /dev/urandom >r.h5.part; bad 'junk' 'holds no parts of an earlier run; remove it, or give -o another name'
echo x >r.h5.part; bad 'a text' 'holds no parts of an earlier run'
cp model.h5 r.h5.part; bad 'a model' 'holds no parts of an earlier run'
cp h.h5 r.h5.part; bad 'a Hessian' "holds a 'hessian', expected 'model'"
cp stream r.h5.part; bad 'a stream' 'holds no parts of an earlier run'
tail -c +$(($2 + 1)) parts >r.h5.part; bad 'parts without the first' 'has part 1 of 9, expected part 0'
{ head -c "$fifth" parts; tail -c +$((last + 1)) parts; } >r.h5.part; bad 'a part that is missing' 'has part 8 of 9, expected part 5'
{ cat parts; tail -c +$((last + 1)) parts; } >r.h5.part; bad 'a part too many' 'goes on after its 9 parts; remove it'
printf '\211HDF\r\n\032\n%0100d' 0 >r.h5.part; bad 'a head and nothing more' '.*(impossible|superblock|damaged)'
mkdir r.h5.part; bad 'a folder' 'cannot open: Is a directory'
mkfifo r.h5.part; no 'FILE.part: a FIFO' 1 'r.h5.part: is no regular file' run -q -o r.h5; rm r.h5.part
echo precious >precious; ln -s precious r.h5.part; no 'FILE.part: a link' 1 'r.h5.part: cannot open: Too many levels' run -q -o r.h5; rm r.h5.part
is '... what it leads to stays' "$(cat precious)" precious
cp model.h5 r.h5.part; no 'FILE.part: the input' 1 'r.h5.part: is an input, and where finished parts' dpq-run -q --compensate none --resume r.h5.part -o r.h5
ok '... which stays' cmp model.h5 r.h5.part; rm -f r.h5.part
py - <<'PY' &
import fcntl, time
f = open("r.h5.part", "w+"); fcntl.lockf(f, fcntl.LOCK_EX); open("locked", "w"); time.sleep(60)
PY
holder=$!
while [ ! -e locked ]; do sleep 0.05; done
no 'FILE.part: of another run at this time' 1 'r.h5.part: is written by another run' run -q -o r.h5
kill $holder; wait $holder 2>/dev/null; rm -f r.h5.part
mkdir sub
as_other="setpriv --reuid 65534 --clear-groups"
if [ "$(id -u)" != 0 ]; then as_other=; fi
chmod 555 sub; chmod 755 .
if $as_other test -x "$(command -v dpq-run)" 2>/dev/null && $as_other test -r "$tmp" 2>/dev/null; then
	no 'a folder to read only' 1 'sub/r.h5.part: cannot open: Permission denied' $as_other dpq-run -q --compensate none --group 8 --resume model.h5 -o sub/r.h5
else
	skip 'a folder to read only' 'another user cannot be had, or does not reach the tools'
fi
chmod 755 sub
no 'a folder that is not there' 1 'nowhere/r.h5.part: cannot open: No such file' run -q -o nowhere/r.h5
no '-o a folder' 1 'sub: is a folder' run -q -o sub
is 'nothing is left of that' "$(left)" ''
for o in '' '-o -' '-o /dev/stdout' '-o /dev/fd/1'; do
	# shellcheck disable=SC2086
	no "--resume without a file: $o" 2 '--resume: -o FILE is expected' sh -c "dpq-run -q --compensate none --resume model.h5 $o >x"
done
no '--resume to a device' 2 '--resume: -o /dev/null is no regular file' run -q -o /dev/null
no 'a model from a pipe' 1 '<stdin>: is no regular file; inputs are read again' sh -c 'cat model.h5 | dpq-run -q --compensate none --resume -o r.h5'
no 'a Hessian from a pipe' 1 '/dev/stdin: is no regular file; inputs are read again' sh -c 'cat h.h5 | dpq-run -q --hessian /dev/stdin --group 8 --resume model.h5 -o r.h5'
ok 'a model on standard input that is a file' sh -c 'dpq-run -q --compensate none --group 8 --resume <model.h5 -o r.h5'
rm -f r.h5
no 'a model that is none' 1 "t.h5: holds a 'tokens', expected 'model'" dpq-run -q --compensate none --resume t.h5 -o r.h5
is 'nothing is left of what made no part' "$(left; find . -name r.h5)" ''
if unshare -m true 2>/dev/null; then
	mkdir small
	no 'a full disk' 1 'small/r.h5.*: cannot write: No space left' unshare -m sh -c 'mount -t tmpfs -o size=64k none small &&
		{ dpq-run -q --compensate none --group 8 --resume model.h5 -o small/r.h5; s=$?; cp small/* .; exit $s; }'
	dpq-run -q --compensate none --group 8 --resume model.h5 -o r.h5 2>said
	dpq-run -q --compensate none --group 8 --resume model.h5 -o x.h5
	ok '... and on, where there is room' cmp r.h5 x.h5
	rm -f r.h5 r.h5.part
else
	for what in 'a full disk' '... and on, where there is room'; do skip "$what" 'mounting is not allowed here'; done
fi

# --- killed ---
cat >kill.py <<'PY'
import os, random, signal, subprocess, sys, time
kills = int(sys.argv[1])
random.seed(int(sys.argv[2]))
command = "dpq-run -q --hessian h.h5 --order o.h5 --group 8 --plan plan --resume model.h5 -o k/r.h5".split()
def start(): return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
def clear():
    for name in os.listdir("k"): os.unlink("k/" + name)
os.mkdir("k")
whole, begin = open("whole.h5", "rb").read(), time.time()
assert start().wait() == 0
seconds, hit, kept, wrong = time.time() - begin, 0, 0, []
for i in range(kills):
    clear()
    for number in (signal.SIGKILL, random.choice([signal.SIGKILL, signal.SIGTERM])):    # the second kills the run that goes on
        child = start(); time.sleep(random.uniform(0, 1.05 * seconds)); child.send_signal(number)
        said = child.communicate()[1]; hit += child.returncode != 0
        if child.returncode not in (0, -number): wrong.append(f"{i}: status {child.returncode}: {said}")
        if os.path.exists("k/r.h5") and open("k/r.h5", "rb").read() != whole: wrong.append(f"{i}: half a result")
        if os.path.exists("k/r.h5") and child.returncode == 0: os.unlink("k/r.h5")
        kept += os.path.exists("k/r.h5.part") and os.path.getsize("k/r.h5.part") > 0
    child = start(); said = child.communicate()[1]
    if child.returncode: wrong.append(f"{i}: goes not on: {said}")
    elif open("k/r.h5", "rb").read() != whole: wrong.append(f"{i}: other bytes")
    if os.path.exists("k/r.h5.part"): wrong.append(f"{i}: FILE.part is left")
print(f"# {2 * kills} signals, {hit} in time, {kept} left parts to go on from")
print("\n".join(wrong[:20]))
sys.exit(bool(wrong) or kept < kills // 2)
PY
ok 'killed at random moments, twice, and gone on with: the same bytes' py kill.py "${PTQ_KILLS:-6}" "${PTQ_SEED:-1}"
grep '^# ' ok.out
done_testing
