#!/bin/sh
# places.t -- token files that say where each token stands: /sequence, /position, /index, /modality
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

cat >make.py <<'PY'
import h5py, numpy as np, sys
r = np.random.default_rng(3)
ids, ends = r.integers(3, 61, 90), [0, 20, 27, 28, 60, 90]
def tokens(path, ids, add_bos=1, **more):
    with h5py.File(path, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
        d = f.create_dataset("tokens", data=np.array(ids, "i4"))
        d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, add_bos, 61
        f["bytes"] = np.full(len(ids), 3, "u2")
        for name, data in more.items(): f[name] = data
tokens("all.h5", ids, sequence=np.array(ends, "i8"))
for i, (a, b) in enumerate(zip(ends, ends[1:])): tokens(f"part{i}.h5", ids[a:b], sequence=np.array([0, b - a], "i8"))
# visual tokens first, text after, order kept (AIFS); positions travel along, or follow from the index
visual = (np.arange(90) // 7 % 2).astype("u1")
order = np.concatenate([a + np.argsort(1 - visual[a:b], kind="stable") for a, b in zip(ends, ends[1:])])
place = np.concatenate([np.arange(b - a) for a, b in zip(ends, ends[1:])]).astype("i4")
tokens("reordered.h5", ids[order], sequence=np.array(ends, "i8"), index=place[order], position=place[order], modality=visual[order])
tokens("by-index.h5", ids[order], sequence=np.array(ends, "i8"), index=place[order])
tokens("positions.h5", ids, sequence=np.array(ends, "i8"), position=place)
tokens("elsewhere.h5", ids, sequence=np.array(ends, "i8"), position=place[::-1].copy())
for m in (0, 1): tokens(f"modality{m}.h5", ids, 0, sequence=np.array(ends, "i8"), modality=np.full(90, m, "u1"))
tokens("text.h5", ids, 0, sequence=np.array(ends, "i8"))
tokens("mixed.h5", ids, sequence=np.array(ends, "i8"), modality=visual)
tokens("third.h5", ids, sequence=np.array(ends, "i8"), modality=np.full(90, 2, "u1"))
PY
py make.py
value() { sed -n "s/^$1.//p" "$2"; }
# near NAME A B: the numbers of two answers within the rounding of what is printed
near() { ok "$1" py -c 'import sys
a, b = ({k: float(v) for k, v in map(str.split, open(f))} for f in sys.argv[1:])
assert a.keys() == b.keys() and all(abs(a[k] - b[k]) <= 3e-6 * abs(a[k]) for k in a), (a, b)' "$2" "$3"; }

for name in llama-gqa qwen2-window gpt2; do
	model=$top/tests/ref/$name.h5
	for convention in gptq bos; do
		run() { eval-ppl -q --ctx 40 --convention $convention "$@" "$model"; }
		run --tokens all.h5 >all
		is "$name, $convention: every token of every sequence is a target" "$(value tokens all)" 90
		for i in 0 1 2 3 4; do run --tokens part$i.h5 | awk -v n="$i" '$1 == "tokens" { t = $2 } $1 == "nll" { print t, $2 }'; done >parts
		ok '... the mean over sequences that run alone' py -c 'n, s = map(sum, zip(*((float(a), float(a) * float(b)) for a, b in map(str.split, open("parts")))))
v = dict(map(str.split, open("all"))); assert n == 90 and abs(s / n - float(v["nll"])) < 3e-7 * float(v["nll"])'
		run --tokens positions.h5 >x; ok '... the usual positions, spelt out' cmp x all
		run --tokens reordered.h5 >x; near '... reordered, with index and position' x all
		run --tokens by-index.h5 >x; near '... reordered, with index' x all
		run --tokens elsewhere.h5 >x; ok '... other positions are other numbers' test "$(value nll x)" != "$(value nll all)"
		run --tokens all.h5 -j 1 >x; ok '... the same on one thread' cmp x all
	done
	hessian-accum -q --ctx 40 --tokens all.h5 "$model" -o sum.h5
	for i in 0 1 2 3 4; do hessian-accum -q --ctx 40 --tokens part$i.h5 "$model" -o h$i.h5; done
	hessian-accum -q h0.h5 h1.h5 h2.h5 h3.h5 h4.h5 -o parts.h5
	hessian-accum -q --ctx 40 --tokens by-index.h5 "$model" -o reordered.hessian
	ok "$name: Hessians are those of the sequences, in any order of their tokens" py -c 'import h5py, numpy as np
a = h5py.File("sum.h5")
def look(name, d):
    if isinstance(d, h5py.Dataset) and name != "config":
        for other in ("parts.h5", "reordered.hessian"):
            x, y = d[...].astype("f8"), h5py.File(other)[name][...].astype("f8")
            if name.endswith("histogram"):	# some numbers cross an edge, as in experts.t; one may do so however few there
                # are, and with it those of the first tokens of all five sequences, which are one token at one place
                assert x.sum() == y.sum() and np.abs((x - y).cumsum()).max() <= 5 + 1e-3 * x.sum(), (name, other)
            else: assert np.abs(x - y).max() <= 1e-5 * np.abs(x).max(), (name, other)
a.visititems(look)'
done

# A limit in the middle of a sequence: what it leaves of it is a window, too.
eval-ppl -q --ctx 40 --convention bos --tokens all.h5 --limit 44 "$model" >x
is 'a limit within a sequence' "$(value tokens x)" 44

eval-ppl -q --ctx 40 --convention bos --tokens by-index.h5 --limit 44 "$model" >x
is '... of a reordered one: all of it or nothing' "$(value tokens x)" 28

# Inputs rounded under a scale a modality: those of one modality alone are a scale a tensor.
model=$top/tests/ref/llama-gqa.h5
dpq-run -q --compensate none --group channel --storage int8 "$model" -o q.h5
py - <<'PY'
import h5py, shutil
def scaled(path, mode, scales):
    shutil.copy("q.h5", path)
    with h5py.File(path, "r+") as f:
        def visit(name, g):
            if "codes" in g: g["act_scale"] = scales; g.attrs["act_format"], g.attrs["act_mode"] = "int8", mode
        f.visititems(lambda n, o: visit(n, o) if isinstance(o, h5py.Group) else None)
import numpy as np
scaled("two.h5", "static-modality", np.array([.05, .4], "f4"))
for i, s in enumerate((.05, .4)): scaled(f"one{i}.h5", "static-tensor", np.array([s], "f4"))
PY
run() { eval-ppl -q --ctx 40 "$@"; }
for m in 0 1; do
	run --tokens modality$m.h5 two.h5 >two; run --tokens text.h5 one$m.h5 >one
	ok "all of modality $m: its scale" cmp two one
done
run --tokens all.h5 two.h5 >x; run --tokens all.h5 one0.h5 >one
ok 'a file without modalities is text' cmp x one
run --tokens mixed.h5 two.h5 >mixed
ok 'of both: neither' py -c 'a, b, c = (float(dict(map(str.split, open(f)))["nll"]) for f in ("mixed", "two", "one")); assert a != b and a != c'
no 'a third modality' 1 'third.h5: /modality: token 0 is of kind 2, expected 0, text, or 1, visual' run --tokens third.h5 two.h5
hessian-accum -q --ctx 40 --tokens mixed.h5 "$model" -o mixed-h.h5
hessian-accum -q --ctx 40 --tokens positions.h5 "$model" -o plain-h.h5
ok 'Hessians of several modalities, whose sum is that of all tokens' py -c '
import h5py
with h5py.File("mixed-h.h5") as a, h5py.File("plain-h.h5") as b:
    x, y = (f["model/layers/1/mlp/up_proj/hessian"][()] for f in (a, b))
    assert x.shape == (2, *y.shape) and abs(x.sum(0) - y).max() <= 1e-5 * abs(y).max()'
done_testing
