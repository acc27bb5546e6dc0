#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5
numbers='--tokens tokens.h5 --ctx 32'

py - <<'PY'
import h5py, numpy as np
with h5py.File("tokens.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
    d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 640).astype("i4"))
    d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
PY
for f in uint1 uint2 nf3 uint4 e2m2 int5 e2m3 e1m5 e3m4; do
	dpq-run -q --compensate none --storage $f --group 16 "$model" -o codes.h5
	ok "$f is packed" exmy-pack codes.h5 -o packed.h5
	exmy-pack --unpack packed.h5 -o back.h5
	ok "$f: unpacking gives the codes back" h5diff --exclude-attribute / codes.h5 back.h5
	# shellcheck disable=SC2086
	is "$f: a packed model gives the same numbers" "$(eval-ppl $numbers packed.h5)" "$(eval-ppl $numbers codes.h5)"
done
# Few columns are multiplied as they are packed: the same up to the rounding of sums in float.
nll() { eval-ppl --tokens tokens.h5 --ctx 8 --limit 16 "$@" | sed -n 's/^nll[[:space:]]*//p'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && d < by && -d < by) }'; }
for f in uint4 int4 e2m1 nf4 int5 e2m2 e4m0 nf5; do
	dpq-run -q --compensate none --storage $f --group channel "$model" | tee codes.h5 | exmy-pack -o packed.h5
	ok "$f: products from packed words" near "$(nll packed.h5)" "$(nll codes.h5)" 1e-5
	ok "$f: with 16-bit activations" near "$(nll --compute-type int16 packed.h5)" "$(nll --compute-type int16 codes.h5)" 1e-4
	sample-tokens --length 62 --ctx 32 --temperature 0 codes.h5 -o a.h5
	sample-tokens --length 62 --ctx 32 --temperature 0 packed.h5 -o b.h5
	ok "$f: the same greedy tokens" h5diff a.h5 b.h5 /tokens
done
ok '16-bit activations round' test "$(nll --compute-type int16 codes.h5)" != "$(nll codes.h5)"
dpq-run -q --compensate none --storage e2m2 --group channel "$top/tests/ref/llama-gqa.h5" -o codes.h5
exmy-pack codes.h5 -o packed.h5
dpq-run -q --compensate none --storage e2m2 --group channel <"$model" | exmy-pack | exmy-pack --unpack | cat >stream
cat stream | exmy-pack --layers '*' >piped.h5
ok 'pipes and files give the same' h5diff --exclude-attribute / packed.h5 piped.h5
cat >check.py <<'PY'
import h5py, numpy as np
c, p = h5py.File("codes.h5"), h5py.File("packed.h5"); n = 0
def see(name, o):
    global n
    if not isinstance(o, h5py.Group) or "packed" not in o: return
    n += 1; code = c[name]["codes"][...]; m, k = code.shape; words = o["packed"][...]
    assert o["packed"].attrs["columns"] == k and words.shape == (m, 5 * -(-k // 32)) and "codes" not in o
    code = np.pad(code, ((0, 0), (0, -k % 32))).reshape(m, -1, 32); words = words.reshape(m, -1, 5)
    for i in range(32):
        q = i // 2
        low = words[..., q // 4] >> np.uint32(4 * (q % 4) + 16 * (i % 2)) & 15; top = words[..., 4] >> np.uint32(15 - q + 16 * (i % 2)) & 1
        assert (low | top << 4 == code[..., i]).all()
p.visititems(see); assert n >= 14, n
PY
ok "five bits lie as in the paper, again in numpy" py check.py

no 'a model that is not quantized' 1 'no layer with codes' exmy-pack "$model"
no 'packing twice' 1 'no layer with codes' exmy-pack packed.h5
no 'unpacking what is not packed' 1 'no layer that is packed' exmy-pack --unpack codes.h5
head -c 20000 packed.h5 >short.h5
no 'a packed file cut short' 1 'short.h5' exmy-pack --unpack short.h5
py - <<'PY'
import h5py, shutil
for name, change in dict(columns=lambda g: g["packed"].attrs.__setitem__("columns", 7), none=lambda g: g["packed"].attrs.__delitem__("columns"),
        narrow=lambda g: (g.__setitem__("x", g["packed"][:, :5]), g.__delitem__("packed"), g.move("x", "packed"), g["packed"].attrs.__setitem__("columns", 999))).items():
    shutil.copy("packed.h5", name + ".h5")
    with h5py.File(name + ".h5", "r+") as f: change(f["model/layers/0/mlp/down_proj"])
PY
no 'packed columns that the model does not have' 1 'columns' eval-ppl --tokens tokens.h5 --ctx 32 columns.h5
no 'packed words that do not say their columns' 1 'columns' eval-ppl --tokens tokens.h5 --ctx 32 none.h5
no 'words too few for the columns' 1 'packed' exmy-pack --unpack narrow.h5
done_testing
