#!/bin/sh
# Channels taken out: those that eq. 13 of MQuant names, measured again in numpy; the model computes what it did, and
# solvers leave the columns alone.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
below() { awk -v x="$1" -v most="$2" 'BEGIN { exit !(x != "" && x >= 0 && x <= most) }'; }
checked() { sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said; }
nll() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$@" | awk '$1 == "nll" { print $2 }'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a > 0 && b > 0 && d <= by * a) }'; }

# GPT-2's inner width is 128, so that the Hadamard is Sylvester's. Two channels stand out in one layer, one in another.
ln2rms -q "$ref/gpt2.h5" | hadamard-rotate -q -o plain.h5
cat >make.py <<'PY'
import h5py, shutil
shutil.copy("plain.h5", "model.h5")
with h5py.File("model.h5", "r+") as f:
    w = f["transformer/h/0/mlp/c_proj/weight"]; w[:, 5] *= 12; w[:, 0] *= 9
    w = f["transformer/h/1/mlp/c_proj/weight"]; w[:, 127] *= 9
PY
py make.py
sample-tokens -q --length 640 --ctx 32 model.h5 -o tokens.h5
rms-suppress --check model.h5 -o split.h5 2>said; s=$?
is 'status' $s 0
ok "the logits stay but for rounding to f16, $(checked)" below "$(checked)" 4.9e-4
grep c_proj said >table
cat >look.py <<'PY'
import h5py, numpy as np, sys
name, bits = sys.argv[1], int(sys.argv[2])
def sylvester(n): return np.ones((1, 1)) if n == 1 else np.kron([[1, 1], [1, -1]], sylvester(n // 2))
h = sylvester(128) / np.sqrt(128)
a, b, rows = h5py.File("model.h5"), h5py.File(name), [l.split() for l in open("table")]
assert len(rows) == 2
for i, row in enumerate(rows):
    path = f"/transformer/h/{i}/mlp/c_proj"; assert row[0] == path
    w = a[path + "/weight"][()].astype("f8"); old = w @ h.T
    before, after = abs(old).max(), abs(w).max(0)
    want = np.flatnonzero(after > before)
    mean = np.sqrt(128) * abs(old.mean(1)).max()
    assert list(want) == ([0, 5] if i == 0 else [127]), want
    assert np.allclose([float(x) for x in row[1:]], [before, after.max(), mean, len(want)], rtol=1e-4), (row, before, after.max(), mean)
    assert abs(mean - after[0]) < 1e-6		# the paper's left side is the first channel of such a matrix
    g = b[path]
    assert list(g["split_index"][()]) == list(want) and g["split_index"].dtype == "i4"
    s = g["split_weight"][()]
    if bits == 16: assert s.dtype == "f2" and np.array_equal(s, w[:, want].astype("f2")) and "split_scale" not in g
    else:
        scale = g["split_scale"][()]
        assert s.dtype == "i1" and abs(s).max(0).tolist() == [127] * len(want) and (abs(s * scale - w[:, want]) <= scale / 2 * 1.0001).all()
    rest = g["weight"][()]; assert not rest[:, want].any(); rest[:, want] = w[:, want]; assert np.array_equal(rest, w)
    assert g.attrs["online_hadamard"] == 128 and np.array_equal(g["bias"][()], a[path + "/bias"][()])
PY
ok 'both sides of eq. 13, and what was taken out' py look.py split.h5 16
rms-suppress --bits 8 --check model.h5 -o eight.h5 2>said
ok "8 bits, $(checked)" below "$(checked)" 0.05
grep c_proj said >table; ok '... of which the largest is 127' py look.py eight.h5 8
ok 'the same likelihood' near "$(nll split.h5)" "$(nll model.h5)" 1e-4
ok 'the same of a stream' near "$(rms-suppress -q <model.h5 | cat | nll)" "$(nll split.h5)" 0
ok 'the same bytes for every -j' sh -c 'rms-suppress -q -j 1 model.h5 -o 1.h5 && rms-suppress -q -j 3 model.h5 -o 3.h5 && cmp 1.h5 3.h5'
is 'bits a weight: 16 of 128 channels each, and an index' "$(tensor-stats split.h5 | awk '/h.0.mlp.c_proj/ { print $7 }')" 32.2656

# Of columns that are f16 already nothing is rounded.
py - <<'PY'
import h5py, shutil
shutil.copy("model.h5", "half.h5")
with h5py.File("half.h5", "r+") as f:
    for i in "01": w = f[f"transformer/h/{i}/mlp/c_proj/weight"]; w[...] = w[()].astype("f2")
PY
rms-suppress --check half.h5 -o r.h5 2>said; rm r.h5
ok "without rounding the logits stay, $(checked)" below "$(checked)" 1e-6

# --- quantized ---
hessian-accum -q --tokens tokens.h5 --ctx 32 split.h5 -o h.h5
py - <<'PY'
import h5py, shutil
def put(f, p, x): attrs = dict(f[p].attrs); del f[p]; f[p] = x; f[p].attrs.update(attrs)
shutil.copy("split.h5", "whole.h5"); shutil.copy("split.h5", "bare.h5"); shutil.copy("h.h5", "bare-h.h5")
for i, columns in (0, [0, 5]), (1, [127]):
    path = f"transformer/h/{i}/mlp/c_proj"
    with h5py.File("whole.h5", "r+") as f:		# as it was, but for rounding
        w = f[path + "/weight"][()]; w[:, columns] = f[path + "/split_weight"][()]; f[path + "/weight"][...] = w
        del f[path + "/split_weight"], f[path + "/split_index"]
    with h5py.File("bare.h5", "r+") as f: del f[path + "/split_weight"], f[path + "/split_index"]
    with h5py.File("bare-h.h5", "r+") as f:		# channels that never fired
        h = f[path + "/hessian"][()]; h[columns] = 0; h[:, columns] = 0; f[path + "/hessian"][...] = h
PY
ok 'the product is that of the whole weight' near "$(nll split.h5)" "$(nll whole.h5)" 1e-6
for way in '--compensate none' '--hessian h.h5' '--hessian h.h5 --compute e4m3fn --recipe paper' '--sequential --tokens tokens.h5 --ctx 32 --reorder gar'; do
	# shellcheck disable=SC2086
	ok "dpq-run $way" dpq-run -q --group 32 $way split.h5 -o q.h5
	ok '... leaves them 0' py -c 'import h5py, numpy as np
f = h5py.File("q.h5")
for i, columns in (0, [0, 5]), (1, [127]):
    g = f[f"transformer/h/{i}/mlp/c_proj"]
    zero = g["zero"][()][:, [c // 32 for c in columns]]
    assert np.array_equal(g["codes"][()][:, columns], zero) and len(g["split_index"]) == len(columns) and g["split_weight"].dtype == "f2"
    assert (g["codes"][()] != np.repeat(g["zero"][()], 32, 1)).mean() > 0.5'
	ok '... and they count' near "$(nll q.h5)" "$(nll model.h5)" 0.1
done
ok 'static scales of inputs are those of the other channels' py - <<'PY'
import subprocess as s, h5py, numpy as np
s.run("dpq-run -q --group 32 --hessian h.h5 --compute e4m3fn --pow2-scale no split.h5 -o q.h5", shell=True, check=True)
h, q = h5py.File("h.h5"), h5py.File("q.h5")
for i, columns in (0, [0, 5]), (1, [127]):
    path = f"transformer/h/{i}/mlp/c_proj"
    top = np.delete(h[path + "/absmax"][()], columns).max()
    assert np.allclose(q[path + "/act_scale"][()], top / 448, rtol=1e-6), (q[path + "/act_scale"][()], top / 448)
PY
ok 'the others are compensated without them' sh -c 'dpq-run -q --group 32 --hessian h.h5 --layers "*c_proj" split.h5 -o a.h5 && dpq-run -q --group 32 --hessian bare-h.h5 --layers "*c_proj" bare.h5 -o b.h5 &&
	for i in 0 1; do h5diff a.h5 b.h5 "/transformer/h/$i/mlp/c_proj/codes" && h5diff a.h5 b.h5 "/transformer/h/$i/mlp/c_proj/scale"; done'
dpq-run -q --compensate none --storage int8 --group channel --act-format int8 eight.h5 --act-mode dynamic-token -o q8.h5
exmy-pack -q q8.h5 -o p8.h5
ok 'packed, with rounded inputs and columns of 8 bits' near "$(nll p8.h5)" "$(nll q8.h5)" 1e-6
ok '... near the model' near "$(nll q8.h5)" "$(nll model.h5)" 0.02
is 'a model against itself, split' "$(tensor-diff --reference whole.h5 split.h5 | awk '/h.0.mlp.c_proj/ { print $3 }')" 0

# --- what is refused ---
py - <<'PY'
import h5py, numpy as np, shutil
P = "transformer/h/0/mlp/c_proj"
def change(path, make, source="split.h5"):
    shutil.copy(source, path)
    with h5py.File(path, "r+") as f: make(f[P])
def put(g, name, x):
    if name in g: del g[name]
    g[name] = x
change("no-index.h5", lambda g: g.__delitem__("split_index"))
change("no-weight.h5", lambda g: g.__delitem__("split_weight"))
change("beyond.h5", lambda g: put(g, "split_index", np.array([0, 128], "i4")))
change("twice.h5", lambda g: put(g, "split_index", np.array([5, 5], "i4")))
change("three.h5", lambda g: put(g, "split_index", np.array([5, 6, 7], "i4")))
change("nan.h5", lambda g: put(g, "split_weight", np.full((32, 2), np.nan, "f2")))
change("unscaled.h5", lambda g: g.__delitem__("split_scale"), "eight.h5")
change("scaled.h5", lambda g: put(g, "split_scale", np.ones(2, "f4")))
change("empty.h5", lambda g: put(g, "split_index", np.zeros(0, "i4")))
change("minus.h5", lambda g: put(g, "split_scale", -np.ones(2, "f4")), "eight.h5")
change("huge.h5", lambda g: g["weight"].__setitem__((slice(None), 5), 1e6), "model.h5")
change("head.h5", lambda g: (put(g.file["lm_head"], "split_index", np.array([1], "i4")), put(g.file["lm_head"], "split_weight", np.ones((61, 1), "f2"))))
PY
run() { eval-ppl -q --tokens tokens.h5 --ctx 32 "$1" -o r.h5; }
no 'weights without an index' 1 'no-index.h5: /transformer/h/0/mlp/c_proj/split_weight: is there, but no split_index' run no-index.h5
no 'an index without weights' 1 'no-weight.h5: /transformer/h/0/mlp/c_proj/split_index: is there, but no split_weight' run no-weight.h5
no 'a column beyond the layer' 1 'split_index: holds 128 at 1, expected columns below 128, ascending' run beyond.h5
no 'no columns' 1 'split_index: is empty, expected columns, or no such member' run empty.h5
no 'a column twice' 1 'split_index: holds 5 at 1, expected' run twice.h5
no 'more columns than weights' 1 'split_weight: has shape' run three.h5
no 'no numbers' 1 'split_weight: holds infinite' run nan.h5
no 'int8 without scales' 1 'split_weight: is int8, expected f32, f16 or bf16' run unscaled.h5
no 'scales of no int8' 1 'split_weight: is f16, expected int8' run scaled.h5
no 'negative scales' 1 'split_scale: holds -1, expected positive scales' run minus.h5
no 'columns of the head' 1 'head.h5: /lm_head: split_weight is of layers of blocks' run head.h5
no 'a channel beyond f16' 1 'huge.h5: /transformer/h/0/mlp/c_proj: a channel that is taken out overflows f16; --bits 8' rms-suppress -q huge.h5 -o r.h5
no 'a model that was split' 1 'split.h5: /transformer/h/0/mlp/c_proj: has columns taken out already' rms-suppress -q split.h5 -o r.h5
no 'a model that is quantized' 1 'q.h5: /transformer/h/0/mlp/c_proj: is quantized already, expected a plain weight: rms-suppress goes first' rms-suppress -q q.h5 -o r.h5
no 'a model without online Hadamards' 1 'llama-gqa.h5: holds no layer behind an online Hadamard; hadamard-rotate makes them' rms-suppress -q "$ref/llama-gqa.h5" -o r.h5
no 'none that is selected' 1 'holds no layer behind an online Hadamard' rms-suppress -q --layers '*c_fc' model.h5 -o r.h5
no 'other bits' 2 "bits: '4' is not one of 16, 8" rms-suppress --bits 4 model.h5 -o r.h5
no 'a rotation behind it' 1 'c_proj: has columns taken out, expected a layer before rms-suppress' sh -c 'py() { /usr/bin/python3 "$@"; }; cp split.h5 u.h5; py -c "
import h5py
with h5py.File(\"u.h5\", \"r+\") as f:
    del f.attrs[\"rotated\"]
    for i in \"01\": del f[\"transformer/h/%s/mlp/c_proj\" % i].attrs[\"online_hadamard\"]"; hadamard-rotate -q u.h5 -o r.h5'
ok 'nothing of that is there' test ! -e r.h5
py - <<'PY'
import h5py, numpy as np, shutil
def sylvester(n): return np.ones((1, 1)) if n == 1 else np.kron([[1, 1], [1, -1]], sylvester(n // 2))
shutil.copy("plain.h5", "spread.h5")
with h5py.File("spread.h5", "r+") as f:		# one large weight before the rotation
    for i in "01": w = f[f"transformer/h/{i}/mlp/c_proj/weight"]; x = w[()]; x[3] += 20 * sylvester(128)[7] / np.sqrt(128); w[...] = x
PY
rms-suppress spread.h5 -o none.h5 2>said
is 'nothing to take out' "$(awk '/c_proj/ { printf "%s ", $5 }' said)" '0 0 '
ok '... leaves all as it was' h5diff --exclude-attribute / spread.h5 none.h5
done_testing
