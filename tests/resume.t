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
        y[name] = (dict((k, str(v)) for k, v in o.attrs.items()), None if isinstance(o, h5py.Group) else (o.dtype.str, o.shape, bytes(o[()])), o.name)
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
cat >part.py <<'PY'
# FILE.part by its description in docs/format.md: images, each behind three lines, of 128 bytes in all
import hashlib
SEAL, PIECE = 128, 16 << 20
def seal(image):
    each = b"".join(hashlib.sha256(image[i:i + PIECE]).digest() for i in range(0, len(image), PIECE))
    return b"%-28s\nbytes %20d\nsha256 %s\n" % (b"ptqtools: a finished part", len(image), hashlib.sha256(each).hexdigest().encode())
def places(raw):
    at = [0]
    while at[-1] < len(raw):
        n = int(raw[at[-1] + 35:at[-1] + 55]); image = raw[at[-1] + SEAL:at[-1] + SEAL + n]
        assert n == int.from_bytes(image[28:36], "little") and raw[at[-1]:at[-1] + SEAL] == seal(image)
        at.append(at[-1] + SEAL + n)
    return at
PY
py - <<'PY'
import part
raw = open("parts", "rb").read(); at = part.places(raw)
assert at[-1] == len(raw) and len(at) == 10, at
open("at", "w").write(" ".join(map(str, at)))
def zeros(name, i, n): open(name, "wb").write(raw[:at[i]] + b"\0" * n + raw[at[i] + n:])
zeros("head-first", 0, part.SEAL); zeros("head-7", 6, part.SEAL); zeros("image-last", 8, at[9] - at[8])
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
told() { grep -v "$unmade" "$1"; }
is '... the report is that of the run that made them' "$(told said | sed 1d)" "$(told report)"
first "$fifth"; again 'five parts' 5
is '... the report has all layers, and the same mean' "$(told said | sed 1d | cut -f 1-5)" "$(told report | cut -f 1-5)"
for bytes in 0 1 36 128 129 185; do first $bytes; again "$bytes bytes of the first part" ''; done
first $((fifth + 8)); again 'five parts and 8 bytes' 5
first $((last - 1)); again 'all but the last byte of a part' 7
first $((end - 1)); again 'all but the last byte' 8
cp head-first r.h5.part; again 'the seal of the first part is not there yet' ''
cp head-7 r.h5.part; again '... of the seventh' 6
cp image-last r.h5.part; again '... nothing of the last' 8
{ head -c "$fifth" parts; echo junk; } >r.h5.part; again 'junk behind five parts' 5
first "$fifth"; run -q -j 2 -o r.h5; ok 'with other threads the same bytes' cmp r.h5 whole.h5; rm r.h5
cp model.h5 elsewhere.h5; first "$fifth"; m=elsewhere.h5 again 'the model under another name and of another time' 5
first "$fifth"; run -q -o r.h5 2>said; is '-q says nothing' "$(grep -v "$unmade" said)" ''; rm r.h5
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
		py -c 'import part, sys
raw = open("parts2", "rb").read()
open("s.h5.part", "wb").write(raw[:part.places(raw)[int(sys.argv[1])]])' $taken
		sequential "$name" s.h5 && cmp -s s.h5 sequential.h5 || wrong="$wrong $taken"
		rm -f s.h5 s.h5.part
	done
	is "--sequential, $(basename "$name"): from one, two, three finished parts the same bytes" "$wrong" ''
done

# --- Hessians, of a model that is run: through finished blocks without sums ---
head -3 "$top/data/vlm/calibration.jsonl" >few.jsonl
model-import -q "$top/data/vlm-pre" -o vlm.h5
awk -v what=texts -f "$top/pipelines/prompts.awk" few.jsonl | tr '\036' '\000' | tokenize -q --null --special --model vlm.h5 -o few.h5
awk -v what=images -f "$top/pipelines/prompts.awk" few.jsonl | sed "s|^|$top/data/vlm/|" | xargs -d '\n' -x images-import -q --model vlm.h5 --tokens few.h5 -o vlm-t.h5
sample-tokens -q --length 150 --ctx 32 "$top/tests/ref/qwen2-moe.h5" -o moe-t.h5
# going_on NAME PARTS COMMAND...: from each of PARTS finished parts the bytes and the table of an undisturbed run
going_on() {
	name=$1 counts=$2; shift 2
	rm -f u.h5; "$@" -o plain-u.h5 2>said; "$@" --resume -o u.h5 2>table-u
	ok "$name: --resume changes nothing" py same.py plain-u.h5 u.h5
	is '... nor the table' "$(cat table-u)" "$(cat said)"
	ln -s nowhere/v.h5 v.h5; "$@" --resume -o v.h5 2>said; mv v.h5.part parts2; rm v.h5
	wrong=''
	for taken in $counts; do
		py -c 'import part, sys
raw = open("parts2", "rb").read(); at = part.places(raw)
open("v.h5.part", "wb").write(raw[:at[int(sys.argv[1]) if int(sys.argv[1]) < len(at) else -1]])' "$taken"
		"$@" --resume -o v.h5 2>said && cmp -s v.h5 u.h5 && grep -q "v.h5.part: .* parts are there" said || wrong="$wrong $taken"
		grep -v 'parts are there' said | cmp -s - table-u || wrong="$wrong $taken's table"
		rm -f v.h5 v.h5.part
	done
	is "$name: from $counts finished parts the same bytes, the same table" "$wrong" ''
}
h="hessian-accum --tokens t.h5 --ctx 32"
going_on 'Hessians' '1 2 5 8 9' $h model.h5
going_on 'Hessians of a shard, of few layers' '3 6' $h --shard 2/2 --layers '*_proj' --layers '!*/1/*' --compute-type bf16 model.h5
going_on 'Hessians of a mixture' '2 3 4' hessian-accum --tokens moe-t.h5 --ctx 32 "$top/tests/ref/qwen2-moe.h5"
going_on 'Hessians of what sees images' '1 2 3 5 6 99' hessian-accum --tokens vlm-t.h5 --ctx 512 vlm.h5
hessian-accum -q --tokens t.h5 --ctx 32 --shard 1/2 model.h5 -o one.h5; hessian-accum -q --tokens t.h5 --ctx 32 --shard 2/2 model.h5 -o two.h5
going_on 'a sum of shards' '1 4' hessian-accum two.h5 one.h5
no '... from a pipe' 1 '<stdin>: is no regular file; inputs are read again' sh -c 'cat one.h5 | hessian-accum --resume - two.h5 -o v.h5'
no 'Hessians of other tokens' 1 'v.h5.part: was begun with another tokens than moe-t.h5' sh -c 'cp parts2 v.h5.part; ln -s nowhere/w.h5 w.h5; hessian-accum -q --tokens t.h5 --ctx 32 --resume model.h5 -o w.h5 2>/dev/null; mv w.h5.part v.h5.part; hessian-accum --tokens moe-t.h5 --ctx 32 --resume model.h5 -o v.h5'
rm -f v.h5.part w.h5

# --- parts that were changed after they were written: one bit, anywhere ---
cat >flip.py <<'PY'
import h5py, part, random, re, subprocess
random.seed(1)
whole, raw = open("whole.h5", "rb").read(), open("parts", "rb").read()
at = part.places(raw)
def inside(i, word):    # where the part has it, or the numbers of a dataset
    found = raw.find(word, at[i], at[i + 1]); assert found >= 0, (i, word); return found
def numbers(i, path):
    open("one.h5", "wb").write(raw[at[i] + part.SEAL:at[i + 1]])
    with h5py.File("one.h5") as f: return at[i] + part.SEAL + f[path].id.get_offset()
layer = "model/layers/%d/self_attn/q_proj/"
flips = [(i, at[i] + d) for i in (0, 4, 8) for d in (0, 40, 54, 70, 127, part.SEAL, part.SEAL + 28)]    # of the seal, of the superblock
flips += [(i, inside(i, w)) for i, w in ((0, b"resume"), (0, b"dpq-run"), (4, b"resume:report"), (4, b"storage"), (8, b"resume:report"))]
flips += [(i, numbers(i, layer % (i - 2) + name) + 2) for i in (2, 5, 7) for name in ("codes", "scale")]
flips += [(i, at[i + 1] - 1) for i in (0, 5, 8)] + [(i, random.randrange(at[i], at[i + 1])) for i in range(9)]
wrong, anew, idle = [], 0, 0
for i, place in flips:
    d = place - at[i]; fixed = d < 35 or 55 <= d < 63 or d == 127    # words of the seal that say nothing of the image
    idle += fixed
    bad = bytearray(raw); bad[place] ^= 1 << random.randrange(7)
    open("r.h5.part", "wb").write(bad)
    run = subprocess.run("dpq-run --hessian h.h5 --order o.h5 --group 8 --plan plan --resume model.h5 -o r.h5".split(), stderr=subprocess.PIPE, text=True)
    where = f"part {i + 1}, byte {d}: "
    said = re.search(r"r.h5.part: part (\d+) was damaged after it was written: it is made anew", run.stderr)
    anew += said is not None
    if run.returncode or open("r.h5", "rb").read() != whole: wrong.append(f"{where}status {run.returncode} or other bytes: {run.stderr[:200]}")
    elif (said is None) != fixed or said is not None and int(said[1]) != i + 1: wrong.append(f"{where}said: {said}")
print(f"# {len(flips)} flips, {anew} parts made anew")
print("\n".join(wrong)); raise SystemExit(bool(wrong) or idle > 10)
PY
ok 'one bit of a part that has changed: the same bytes, and the part is made anew' py flip.py
grep '^# ' ok.out; rm -f r.h5

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
differs 'no order' "$begun .*--reorder none .*'" d --hessian h.h5 --reorder none --group 8 --plan plan model.h5
differs 'another model, one number of which differs' 'with another model than other.h5' d --hessian h.h5 --order o.h5 --group 8 --plan plan other.h5
rm -f r.h5.part
py - <<'PY'
import h5py, part
data = open("parts", "rb").read(); n = part.places(data)[1]
open("first.h5", "wb").write(data[part.SEAL:n])
with h5py.File("first.h5", "r+") as f: f.attrs["resume:processor"] = "abacus"
first = open("first.h5", "rb").read()
open("cpu", "wb").write(part.seal(first) + first + data[n:])
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
cp h.h5 r.h5.part; bad 'a Hessian' 'holds no parts of an earlier run'
cp stream r.h5.part; bad 'a stream' 'holds no parts of an earlier run'
tail -c +$(($2 + 1)) parts >r.h5.part; bad 'parts without the first' 'has part 1 of 9, expected part 0'
{ head -c "$fifth" parts; tail -c +$((last + 1)) parts; } >r.h5.part; bad 'a part that is missing' 'has part 8 of 9, expected part 5'
{ cat parts; tail -c +$((last + 1)) parts; } >r.h5.part; bad 'a part too many' 'goes on after its 9 parts; remove it'
printf '\211HDF\r\n\032\n%0100d' 0 >r.h5.part; bad 'a head and nothing more' 'holds no parts of an earlier run'
py -c 'import part; image = open("h.h5", "rb").read(); open("r.h5.part", "wb").write(part.seal(image) + image)'
bad 'parts of a Hessian' "holds a 'hessian', expected 'model'"
py -c 'import part; image = b"\211HDF\r\n\032\n" + b"0" * 100; open("r.h5.part", "wb").write(part.seal(image) + image)'
bad 'no image, sealed' '.*(impossible|superblock|damaged)'
py - <<'PY'	# as an earlier version has it
import h5py, part
data = open("parts", "rb").read(); n = part.places(data)[1]
open("first.h5", "wb").write(data[part.SEAL:n])
with h5py.File("first.h5", "r+") as f: del f["resume:report"]
first = open("first.h5", "rb").read()
open("r.h5.part", "wb").write(part.seal(first) + first + data[n:])
PY
bad 'no report in a part' 'part 0 has no report of its layers; remove the file to begin anew'
mkdir r.h5.part; bad 'a folder' 'cannot open: Is a directory'
mkfifo r.h5.part; no 'FILE.part: a FIFO' 1 'r.h5.part: is no regular file' run -q -o r.h5; rm r.h5.part
echo precious >precious; ln -s precious r.h5.part; no 'FILE.part: a link' 1 'r.h5.part: is a symbolic link, expected the parts of an earlier run, or nothing$' run -q -o r.h5; rm r.h5.part
is '... what it leads to stays' "$(cat precious)" precious
cp model.h5 r.h5.part; no 'FILE.part: the input' 1 'r.h5.part: is an input, and where finished parts' dpq-run -q --compensate none --resume r.h5.part -o r.h5
ok '... which stays' cmp model.h5 r.h5.part; rm -f r.h5.part
/usr/bin/python3 - <<'PY' &	# not py: a function would be another process than the one to kill
import fcntl, time
f = open("r.h5.part", "w+"); fcntl.lockf(f, fcntl.LOCK_EX); open("locked", "w"); time.sleep(3600)
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
seconds, total, late, kept, wrong = time.time() - begin, os.path.getsize("parts"), 0, 0, []
def size(): return os.path.getsize("k/r.h5.part") if os.path.exists("k/r.h5.part") else 0
def stop(name, number):                     # when FILE.part has grown to some size; sooner, where that was too late
    global late
    for again in range(20):
        goal = max(1, size() + (total - size()) * random.random() / 2 ** again)
        child = start()
        while size() < goal and child.poll() is None: time.sleep(0.001)
        time.sleep(random.random() * seconds / 9 / 2 ** again); child.send_signal(number)
        said = child.communicate()[1]
        if os.path.exists("k/r.h5") and open("k/r.h5", "rb").read() != whole: wrong.append(f"{name}: half a result")
        if child.returncode == -number: return
        if child.returncode: wrong.append(f"{name}: status {child.returncode}: {said}"); return
        os.unlink("k/r.h5"); late += 1
    wrong.append(f"{name}: the signal never came in time")
for i in range(kills):
    clear()
    for number in (signal.SIGKILL, random.choice([signal.SIGKILL, signal.SIGTERM])):    # the second kills the run that goes on
        stop(i, number)
        if size(): kept += 1
        elif not os.path.exists("k/r.h5"): wrong.append(f"{i}: what was finished is gone")
    child = start(); said = child.communicate()[1]
    if child.returncode: wrong.append(f"{i}: goes not on: {said}")
    elif open("k/r.h5", "rb").read() != whole: wrong.append(f"{i}: other bytes")
    if os.path.exists("k/r.h5.part"): wrong.append(f"{i}: FILE.part is left")
print(f"# {2 * kills} signals in time, {late} too late; {kept} left parts to go on from")
print("\n".join(wrong[:20]))
sys.exit(bool(wrong) or kept < kills)
PY
ok 'killed at random moments, twice, and gone on with: the same bytes' py kill.py "${PTQ_KILLS:-6}" "${PTQ_SEED:-1}"
grep '^# ' ok.out
done_testing
