#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5

py - <<'PY'
import h5py, numpy as np
r = np.random.default_rng(1)
def root(f): f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"
with h5py.File("w.h5", "w") as f:
    root(f)
    w = r.laplace(0.1, 1, (70, 300)); w[3] = 0
    f["b/weight"] = w.astype("f2"); f["a10/weight"] = w[:5].astype("f4"); f["a9/weight"] = np.float32([[-1, 1], [1, -1]])
    f["norm/weight"] = np.ones(4, "f4"); f["b/bias"] = np.full(70, 1e6, "f4")
with h5py.File("nan.h5", "w") as f: root(f); w[2, 2] = np.nan; f["b/weight"] = w.astype("f4")
with h5py.File("none.h5", "w") as f: root(f); f["norm/weight"] = np.ones(4, "f4")
with h5py.File("kind.h5", "w") as f: f["b/weight"] = np.ones((2, 2), "f4")
PY
cat >check.py <<'PY'
# check.py TABLE MODEL: every number again, in numpy, of the weight as its members say
import csv, sys, h5py, numpy as np
E4M3 = np.array([(-1) ** (c >> 7) * (2.0 ** ((c >> 3 & 15) - 7) * (1 + (c & 7) / 8) if c >> 3 & 15 else (c & 7) * 2.0 ** -9)
    for c in range(256) if c & 127 != 127])
def weight(g):
    if "weight" in g: return g["weight"][...].astype("f4"), 8 * g["weight"].dtype.itemsize
    code, scale, zero = g["codes"][...].astype("f4"), g["scale"][...], g["zero"][...]
    m, n = code.shape; size = g.attrs["group"]; index = g["group_index"][...] if "group_index" in g else np.arange(n) // size
    w = (code - zero[:, index]) * scale[:, index]
    bits = 4 * m * n + scale.size * 32 + zero.size * 4
    if "group_index" in g: bits += n * np.ceil(np.log2(scale.shape[1]))
    if g.attrs["compute"] == "e4m3fn":
        near = np.abs(w[..., None] - E4M3).min(-1)      # ties do not matter here: both neighbours are as near
        low = E4M3[np.abs(w[..., None] - E4M3).argmin(-1)]
        w = low.astype("f4") * g["scale8"][0]; bits += 32
    return w, bits / m / n
rows = list(csv.DictReader(open(sys.argv[1]), delimiter="\t")); f = h5py.File(sys.argv[2]); total = count = 0
for row in rows[:-1]:
    w, bits = weight(f[row["layer"]]); w = w.astype("f8"); m, n = w.shape; u = w.mean(); live = np.abs(w).max(1) > 0
    s = w[live].std(1) / np.abs(w[live]).max(1)
    want = dict(rows=m, columns=n, bits=bits, sigma=s.mean(), sigma_min=s.min(), sigma_max=s.max(), deviation=w.std(),
        kurtosis=((w - u) ** 4).mean() / w.var() ** 2, absmax=np.abs(w).max(), incoherence=np.abs(w).max() * (m * n) ** .5 / np.linalg.norm(w))
    for k, v in want.items():       # six digits are printed
        assert abs(float(row[k]) - v) <= 1e-5 * abs(v), (row["layer"], k, row[k], v)
    total += bits * m * n; count += m * n
assert rows[-1]["layer"] == "all" and abs(float(rows[-1]["bits"]) - total / count) < 1e-5 * total / count
assert float(rows[-1]["absmax"]) == max(float(r["absmax"]) for r in rows[:-1])
print(len(rows) - 1)
PY

tensor-stats w.h5 >a
is 'every matrix without a config, in natural order' "$(cut -f1 a | xargs)" 'layer /a9 /a10 /b all'
is 'storage' "$(cut -f2-4 a | xargs)" 'storage group compute f32 - none f32 - none f16 - none - - -'
is 'by hand: plus and minus one' "$(grep '^/a9' a | cut -f5- | xargs)" '2 2 32 1 1 1 1 1 1 1'
ok 'the numbers are numpy'\''s' py check.py a w.h5
tensor-stats --json w.h5 >j
ok 'JSON' py -c 'import json; d = json.load(open("j")); assert [r["layer"] for r in d["rows"]] == ["/a9", "/a10", "/b"]
assert d["rows"][0]["rows"] == 2 and d["rows"][0]["kurtosis"] == 1 and set(d["all"]) == {"bits", "absmax"}'
tensor-stats w.h5 -o r.h5 >x
ok '-o does not change what is printed' cmp x a
ok 'the record: a dataset a column' py -c 'import csv, h5py; f = h5py.File("r.h5"); rows = list(csv.DictReader(open("a"), delimiter="\t"))
assert f.attrs["ptq_kind"] == "result" and [s.decode() for s in f["layer"]] == ["/a9", "/a10", "/b"] and f["rows"].dtype == "i8"
assert set(f) == set(rows[0]) and all(abs(f[k][2] - float(rows[2][k])) <= 1e-5 * f[k][2] for k in ("sigma", "kurtosis", "bits"))
assert abs(f.attrs["bits"] - float(rows[3]["bits"])) < 1e-4 and f.attrs["history"].startswith("tensor-stats ")'
is 'a history that does not know the output' "$(h5dump -a history r.h5 | grep -c -- 'json\|r.h5')" 1

# a model: plain, quantized in every way, through pipes
tensor-stats "$model" >m
is 'layers of the architecture only' "$(py check.py m "$model") $(grep -c 'embed\|head\|norm' m)" '14 0'
tensor-stats --layers '*embed*' --layers '*/1/*q_proj' "$model" >x
is '--layers brings in an embedding' "$(cut -f1 x | xargs)" 'layer /model/embed_tokens /model/layers/1/self_attn/q_proj all'
dpq-run -q --compensate none --group 8 "$model" -o q.h5; tensor-stats q.h5 >x
is 'quantized: the effective weight' "$(py check.py x q.h5) $(sed -n 2p x | cut -f2-4 | xargs)" '14 uint4 8 none'
dpq-run -q --compensate none --compute e4m3fn --act-mode none --group 8 "$model" -o q.h5; tensor-stats q.h5 >x
is 'FP8 arithmetic' "$(py check.py x q.h5) $(sed -n 2p x | cut -f2-4 | xargs)" '14 uint4 8 e4m3fn'
for group in channel tensor; do
	dpq-run -q --compensate none --storage int8 --group $group "$model" | tensor-stats >x
	is "a scale per $group" "$(sed -n 2p x | cut -f2-4 | xargs)" "int8 $group none"
done
# shellcheck disable=SC2002
cat "$model" | tensor-stats | cmp - m; is 'a pipe gives what a file gives' $? 0
dpq-run -q --compensate none --layers '*/0/mlp/*' "$model" | tensor-stats -j 3 >x
dpq-run -q --compensate none --layers '*/0/mlp/*' "$model" -o q.h5; tensor-stats -j 1 q.h5 >y
ok 'a stream too, on any number of threads' cmp x y

# of Hessians
py - <<'PY'
import h5py, numpy as np
def hessian(path, diag, count=4, fourth=None):
    with h5py.File(path, "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "hessian", "1"; n = len(diag)
        f["a/hessian"], f["a/count"] = np.diag(np.float32(diag)), np.int64(count); f["a/absmax"] = f["a/mean_abs"] = np.arange(n, dtype="f4")
        if fourth: f["a/fourth"] = np.float64(fourth)
hessian("h.h5", [4, 0, 8, 80]); hessian("h-fourth.h5", [4, 0, 8, 80], fourth=[4, 0, 16, 2000]); hessian("h-minus.h5", [1, -1]); hessian("h-nan.h5", [1, float("nan")]); hessian("h-none.h5", [1, 1], 0)
PY
is 'Hessians: by hand' "$(tensor-stats h.h5 | xargs)" 'layer tokens inputs dead square_mean square_median square_max absmax kurtosis /a 4 4 1 5.75 1.5 20 3 -'
is '... and their kurtosis, 505/4 over (23/4)²' "$(tensor-stats h-fourth.h5 | awk 'END { print $NF }')" 3.81853
no 'a negative diagonal' 1 'h-minus.h5: /a/hessian: diagonal element 1 is -1' tensor-stats h-minus.h5
no 'NaN on the diagonal' 1 'h-nan.h5: /a/hessian: diagonal element 1 is nan' tensor-stats h-nan.h5
no 'no tokens' 1 'h-none.h5: /a/count: says that no token was seen' tensor-stats h-none.h5
no 'no Hessian selected' 1 'h.h5: holds no linear layer that --layers selects' tensor-stats --layers b h.h5

no 'NaN' 1 'nan.h5: /b/weight: holds infinite or undefined' tensor-stats nan.h5
no 'no layer' 1 'none.h5: holds no linear layer$' tensor-stats none.h5
no 'no layer selected' 1 'w.h5: holds no linear layer that --layers selects' tensor-stats --layers c w.h5
no 'no kind' 1 "kind.h5: has no attribute ptq_kind, expected 'model.hessian'" tensor-stats kind.h5
no 'another kind' 1 "r.h5: holds a 'result', expected 'model" tensor-stats r.h5
no 'two models' 2 'one operand too many' tensor-stats w.h5 w.h5
no 'a full disk' 1 'stdout.*cannot write' sh -c 'tensor-stats w.h5 >/dev/full'
head -c 3000 w.h5 >cut.h5; no 'a file cut short' 1 'cut.h5: is cut short' tensor-stats cut.h5
no 'a record is whole or not there' 1 'nan.h5' tensor-stats nan.h5 -o bad.h5
is 'nothing is left behind' "$(find . -name bad.h5 -o -name '.ptq*')" ''
done_testing
