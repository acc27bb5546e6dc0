#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py - <<'PY'
import h5py, numpy as np
r = np.random.default_rng(1)
def root(f): f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"
w = r.standard_normal((40, 300)).astype("f4"); w[3] = 0
with h5py.File("w.h5", "w") as f: root(f); f["a/weight"] = w; f["zero/weight"] = np.zeros((4, 8), "f4")
with h5py.File("two.h5", "w") as f: root(f); f["a/weight"] = w; f["b/weight"] = r.laplace(size=(7, 90)).astype("f4")
w[5, 6] = np.inf
with h5py.File("inf.h5", "w") as f: root(f); f["a/weight"] = w
PY

# sigma 0.25, by quadrature elsewhere
exmy-sweep --tsv --sigma 0.25 --formats int5,e1m3,e2m2,e3m1,e4m0,nf5 >curve
is 'errors at sigma 0.25' "$(awk 'NR > 1 { printf "%s %.4e ", $1, $4 }' curve)" \
	'int5 3.7037e-04 e1m3 3.7037e-04 e2m2 2.1289e-04 e3m1 6.6613e-04 e4m0 2.3606e-03 nf5 1.6935e-04 '
is 'under a power of two and under a divided scale' "$(exmy-sweep --tsv --sigma 0.25 --formats mxfp4,nvfp4 --table curve | awk 'NR > 1 { printf "%s %.4e ", $1, $4 }')" \
	'mxfp4 1.4500e-03 nvfp4 9.1415e-04 '
is '... of channels: nvfp4 is e2m1' "$(exmy-sweep --tsv --formats nvfp4 --table error w.h5 | cut -f4)" "$(exmy-sweep --tsv --formats e2m1 --table error w.h5 | cut -f4)"
exmy-sweep --tsv --sigma 0.12:0.28:0.005 >curve
is 'E2Mx is the best of 5 and 6 bits wherever models are' "$(awk 'NR > 1 && $2 > 4 && (!(($2, $3) in e) || $4 < e[$2, $3]) {
	e[$2, $3] = $4; f[$2, $3] = $1 } END { for (k in f) print f[k] }' curve | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }')" '33 e2m2 33 e2m3 '
exmy-sweep --tsv --table crossover --formats e3m0,e2m1,e1m2 >cross
is 'of 4 bits E3M0 is better below 0.1244' "$(awk '$1 == "e3m0" && $2 == "e2m1" { printf "%.4f", $4 }' cross)" 0.1244
exmy-sweep --tsv --sigma 0.1,0.2 --formats e2m2,int4 --monte-carlo 20000 --seed 7 >sampled
ok 'samples lie within four standard errors' awk 'NR > 1 && ($6 - $4) ^ 2 > 16 * $7 ^ 2 { exit 1 }' sampled
ok 'a sample has a standard error' awk 'NR > 1 && !($7 > 0) { exit 1 }' sampled

# values: of the page, by its rules, and what a layer of these codes is to the tools that read it
exmy-sweep --json --table values --formats "$(for n in 1 2 3 4 5 6 7 8; do printf 'uint%s,' $n; [ $n = 1 ] || printf 'int%s,nf%s,' $n $n; done
	for x in 0 1 2 3 4 5 6; do for y in 0 1 2 3 4 5 6 7; do [ $((x + y)) -lt 1 ] || [ $((x + y)) -gt 7 ] || printf 'e%sm%s,' $x $y; done; done
	)mxfp4,nvfp4,e4m3fn,e4m3ieee,e5m2ieee" >values.json
cat >values.py <<'PY'
import h5py, json, math, re, statistics, struct, sys
import numpy as np
table = {}
for r in json.load(open("values.json"))["rows"]: table.setdefault(r["format"], {})[r["code"]] = r["value"]
def normal(bits, code):
    h, inverse = 2 ** (bits - 1), statistics.NormalDist().inv_cdf; o = 1 - 1 / (4 * (2 * h - 1)) - 1 / (8 * h)
    return -inverse(o + (.5 - o) * code / (h - 1)) / inverse(o) if code < h - 1 else inverse(o + (.5 - o) * (2 * h - 1 - code) / h) / inverse(o)
def float_(x, y, bias, code):
    sign, e, m = -1 if code >> x + y else 1, code >> y & (1 << x) - 1, code & (1 << y) - 1
    return sign * (math.ldexp(2 ** y + m, e - bias - y) if e else math.ldexp(m, 1 - bias - y))
known = dict(mxfp4=(2, 1, 1, 6), nvfp4=(2, 1, 1, 6), e4m3fn=(4, 3, 7, 448), e4m3ieee=(4, 3, 7, 240), e5m2ieee=(5, 2, 15, 57344))
assert len(table) == 8 + 7 + 7 + 34 + 5, len(table)
for f, got in table.items():
    n = [int(x) for x in re.findall(r"\d+", f)]
    if f in known: x, y, bias, top = known[f]; rule, codes = lambda c: float_(x, y, bias, c), 2 ** (1 + x + y)
    elif f[0] == "e": (x, y), top = n, math.inf; rule, codes = lambda c: float_(x, y, 0, c), 2 ** (1 + x + y)
    else: rule, codes, top = dict(i=lambda c: c - (2 ** (n[0] - 1) - 1), u=lambda c: c, n=lambda c: normal(n[0], c))[f[0]], 2 ** n[0] - (f[0] == "i"), math.inf
    want = {c: rule(c) for c in range(codes) if abs(rule(c)) <= top}
    assert set(got) == set(want), f
    for c in got: assert abs(got[c] - want[c]) <= (1e-7 if f[0] == "n" and f != "nvfp4" else 0), (f, c, got[c], want[c])
page = open(sys.argv[1]).read().split("Some of them, FORMAT and first code")[1].split("```")[1]
lines = re.sub(r"\n {4}", " ", page).strip().split("\n")
assert len(lines) == 10
for line in lines:
    (f, first), values = line.split(":")[0].split(), line.split(":")[1].split(); got, at = table[f], int(first)
    for v in values:
        while at not in got: at += 1    # a code that stands for none
        assert np.float32(got[at]) == got[at] == np.float32(v) and math.copysign(1, got[at]) == math.copysign(1, float(v)), (line, at, got[at]); at += 1
    assert first != "0" or at == max(got) + 1, line
for name, coded in ("plain.h5", False), ("coded.h5", True):
    with h5py.File(name, "w") as h:
        h.attrs["ptq_kind"], h.attrs["ptq_version"] = "model", "1"
        for f, got in table.items():
            c = np.array(sorted(got), "u1")[None]
            if not coded: h[f + "/weight"] = np.array([[got[int(k)] for k in c[0]]], "f4"); continue
            g = h.create_group(f); g["codes"] = c; g["scale"] = np.ones((1, 1), "f4")
            g.attrs.update(storage=f, group=np.int64(0), bits=np.int64(np.ceil(np.log2(c.max() + 1)) if f not in known or f in ("mxfp4", "nvfp4") else 8))
            if f[0] == "u": g["zero"] = np.zeros((1, 1), "u1")
            if f == "mxfp4": g.attrs["scale_dtype"] = "e8m0"
            if f == "nvfp4": g.attrs["scale_dtype"] = "e4m3fn"; g["scale_tensor"] = np.ones(1, "f4")
PY
ok 'values by the rules of the page, and its lists' py values.py "$top/docs/format.md"
tensor-diff -q -r plain.h5 coded.h5 >differences; is 'a layer of all codes is its values, to the tools' "$(awk -F'\t' 'NR > 1 && $1 ~ "^/" { n++; s += $3 } END { print n, s }' differences)" '61 0'
exmy-sweep --tsv --table values --formats nf5,e2m1 >lines; exmy-sweep --formats nf5,e2m1 -o values.h5
ok 'lines say every digit, and the file has them' py -c '
import h5py, json, numpy as np
t = {(r["format"], r["code"]): r["value"] for r in json.load(open("values.json"))["rows"]}; f = h5py.File("values.h5")["values"]
rows = [l.rstrip("\n").split("\t") for l in open("lines")][1:]; assert len(rows) == 48
for i, (n, c, v) in enumerate(rows):
    assert np.float32(v) == t[n, int(c)] == f["value"][i] and (f["format"].asstr()[i], f["code"][i]) == (n, int(c)), (n, c, v)'

exmy-sweep --formats e2m2,int5 --band 0.3:0.35 w.h5 -o sweep.h5 2>err
cat >check.py <<'PY'
import h5py, numpy as np
w = h5py.File("w.h5")["a/weight"][...].astype("f8"); s = h5py.File("sweep.h5")
assert s.attrs["ptq_kind"] in ("sweep", b"sweep") and len(s["curve/sigma"]) == 2 * 49
live = w[np.abs(w).max(1) > 0]; x = live / np.abs(live).max(1, keepdims=True); sigma = x.std(1)
row = {k: v[0] for k, v in s["layer"].items()}
assert row["channels"] == 40 and row["zero_channels"] == 1
for k, v in dict(mean=sigma.mean(), deviation=sigma.std(), least=sigma.min(), quarter=np.quantile(sigma, .25), median=np.median(sigma),
        twentieth=np.quantile(sigma, .05), three_quarters=np.quantile(sigma, .75), nineteen_twentieths=np.quantile(sigma, .95), largest=sigma.max(),
        in_band=((sigma >= .3) & (sigma <= .35)).mean()).items(): assert abs(row[k] - v) < 1e-6, (k, row[k], v)
step = np.abs(live).max(1, keepdims=True) / 15
error = (((np.rint(live / step) * step - live) / np.abs(live).max(1, keepdims=True)) ** 2).mean(1).mean()
i = [n for n, f in enumerate(s["error/format"].asstr()) if f == "int5"][0]
assert abs(s["error/error"][i] / error - 1) < 1e-5, (s["error/error"][i], error)
PY
ok 'the sigma of channels and the error of int5, again in numpy' py check.py
exmy-sweep -q --tsv --table layer two.h5 >layers
cat >all.py <<'PY'
import h5py, numpy as np
x = [r / np.abs(r).max() for n in "ab" for r in h5py.File("two.h5")[n]["weight"][...].astype("f8") if r.any()]; sigma = np.array([r.std() for r in x])
head, *rows = (l.rstrip("\n").split("\t") for l in open("layers")); last = dict(zip(head, rows[-1]))
assert len(rows) == 3 and last["layer"] == "all" and last["channels"] == "47" and last["zero_channels"] == "1", last
for k, v in dict(mean=sigma.mean(), deviation=sigma.std(), twentieth=np.quantile(sigma, .05), median=np.median(sigma), nineteen_twentieths=np.quantile(sigma, .95),
        in_band=((sigma >= .12) & (sigma <= .28)).mean()).items(): assert abs(float(last[k]) - v) < 1e-5, (k, last[k], v)
PY
ok 'channels of all layers together' py all.py
ok 'a layer of zeros is named' grep -q 'zero: is all zero' err
cp sweep.h5 once.h5; exmy-sweep -j 1 -q --formats e2m2,int5 --band 0.3:0.35 - <w.h5 >piped.h5
ok 'a pipe gives the same' h5diff --exclude-attribute / once.h5 piped.h5
exmy-sweep -q --tsv --formats e2m2 --plot plot.svg >out
ok 'a plot' grep -q '</svg>' plot.svg
ok 'no part of a plot is left' test ! -e plot.svg.part

no 'an unknown format is answered with the nearest and the list' 2 "no format 'e2n2'; did you mean e2m2.*nf2..nf8" exmy-sweep --formats e2n2
no 'sigma 0' 2 "0 is not a number from 1e-06 to 10" exmy-sweep --tsv --sigma 0.1,0
no 'a negative sigma' 2 "-0.1 is not a number from" exmy-sweep --tsv --sigma -0.1:0.5:0.1
no 'junk as sigma' 2 "is not a list of numbers" exmy-sweep --tsv --sigma 0.1,x
no 'an infinite weight' 1 'a/weight: (row 5 )?holds' exmy-sweep --tsv inf.h5
no 'a plot of an unknown kind' 2 'ends in .svg' exmy-sweep --tsv --plot x.gif
no 'a plot where there is no folder' 1 'nowhere/x.svg: cannot create a file beside it' exmy-sweep -q --tsv --plot nowhere/x.svg
no 'a file that is not there' 1 'nothing.h5' exmy-sweep --tsv nothing.h5
done_testing
