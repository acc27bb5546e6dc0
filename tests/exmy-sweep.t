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
