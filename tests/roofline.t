#!/bin/sh
# roofline.t -- projected throughput: numbers worked out by hand, a plain calculation of its own matrix by matrix, and
# what is refused
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
value() { awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }'; }

# By hand, Llama 2 70B in W4A16 on Gaudi 2, 1024 in and out: 80 (8192 (2·8192 + 2·1024) + 3·8192·28672) = 68.4522e9 weights of
# 4 + 20/128 bits and two tables of 32000 · 8192 at 16: 36.611e9 bytes. 2·80·1024 keys and values of 2 bytes: 327680 a
# token, 671.1e6 a sequence; (96e9 - 36.611e9) / 671.1e6 = 88.5. Prefill: 88 (2·68.4522e9·1024 + 2·80·8192·1024·1025)/432e12
# = 28.837 s, the head adds 0.0001 s.
roofline >hand
is 'by hand: batch' "$(value batch <hand)" 88
is 'by hand: gigabytes' "$(value weight_gb <hand)" 36.611
is 'by hand: prefill' "$(value prefill_s <hand)" 28.8371
# W8A8: 68.4522e9 + 2·262.144e6·2 bytes; (96 - 69.4996)e9 / (163840 · 2048) = 78.97. Memory for each step: 68.4522e9 + 0.5243e9
# + 78·163840·c bytes, c from 1025 to 2047, over 2.45e12: 1023·28.1537e-3 + 78·163840·1571328/2.45e12 = 36.997 s
roofline --formats W8A8 >hand
is 'by hand: W8A8' "$(value batch <hand) $(value weight_gb <hand) $(value decode_s <hand) $(value memory_bound <hand)" '78 69.4996 36.997 1'
# One token out: no decode
roofline --generate 1 --prompt 7 >hand
is 'one token out: the prefill gives it' "$(value decode_s <hand) $(value memory_bound <hand)" '0 -'
roofline --formats W16A16 >hand
is '16 bits do not fit, as the paper says' "$(value batch <hand) $(value tokens_per_second <hand) $(value speedup <hand)" '0 0 -'
# Mixtral 8x7B: 32 (4096 (2·4096 + 2·1024) + 8·4096 + 8·3·4096·14336) = 46.4404e9 weights, of which a token passes those of
# the router and of two experts, 12.6175e9; tables of 32000 · 4096. One sequence, 2·12.6175e9·512 + 2·32·4096·512·513
# operations and 2·131.072e6 of the head, of all that fit.
mkdir mixtral && echo '{"model_type": "mixtral"}' >mixtral/config.json
roofline --models mixtral --formats W8A8 --hardware h100 --prompt 512 --generate 1 >hand
is 'experts: all are stored, a token passes some' "$(value weight_gb <hand)" 46.9647
ok '... by operations' awk -v t="$(value prefill_s <hand)" -v b="$(value batch <hand)" 'BEGIN {
	w = b * (2 * 12.617515008e9 * 512 + 2 * 32 * 4096 * 512 * 513) / 1979e12 + b * 2 * 131.072e6 / 989e12
	exit !(b > 100 && t / w - 1 < 1e-5 && 1 - t / w < 1e-5) }'

cp "$top/tests/ref/gpt2.h5" .
model-import -q "$top/data/prose" -o prose.h5
lists='--models llama-2-7b,llama-2-70b,llama-3.1-8b,llama-3.1-70b,qwen2-7b,qwen2-72b --hardware gaudi2,gaudi3,h100,h200 --prompt 1,100,3000 --generate 1,2,77'
# shellcheck disable=SC2086
{ roofline $lists --formats W4A16,w8a8,W4A8,W3A8,W16A16; roofline $lists --formats W4A16,W4A8,W7A8 --group 32 --kv-bits 4; } >table
ok 'a plain calculation: matrix by matrix, token by token' py - <<'PY'
M = {"llama-2-7b": (32, 4096, 32, 32, 11008, 32000), "llama-2-70b": (80, 8192, 64, 8, 28672, 32000), "llama-3.1-8b": (32, 4096, 32, 8, 14336, 128256),
    "llama-3.1-70b": (80, 8192, 64, 8, 28672, 128256), "qwen2-7b": (28, 3584, 28, 4, 18944, 152064), "qwen2-72b": (80, 8192, 64, 8, 29568, 152064)}
H = {"gaudi2": (96, 2.45, 432, 865), "gaudi3": (128, 3.7, 1835, 1835), "h100": (80, 3.35, 989, 1979), "h200": (141, 4.8, 989, 1979)}
def project(model, on, f, n, m, group, kv_bits):
    blocks, d, heads, kv_heads, inner, vocab = M[model]; gb, tb, t16, t8 = H[on]
    b, a = map(int, f.upper()[1:].split("A")); hd = 128; rate = (t8 if a == 8 else t16) * 1e12
    matrices = [(heads * hd, d), (kv_heads * hd, d), (kv_heads * hd, d), (d, heads * hd), (inner, d), (inner, d), (d, inner)]
    bits = 0
    for _ in range(blocks):
        for o, i in matrices: bits += o * i * b + (o * i / group * (16 + b) if b < 8 else 0)
    once = bits / 8 + 2 * vocab * d; stored = once + 2 * vocab * d
    token = sum(hd * kv_heads * (kv_bits or a) / 8 * 2 for _ in range(blocks))
    batch = int((gb * 1e9 - stored) // ((n + m) * token)) if stored < gb * 1e9 else 0
    if not batch: return 0, stored, 0, 0, 0, 0
    def tokens(first, last):        # operations of one sequence's tokens at these places, from 1, that see all up to theirs
        return sum(sum(2 * o * i for o, i in matrices) * blocks + blocks * heads * 2 * (2 * hd * p) for p in range(first, last + 1))
    def head(): return 2 * vocab * d * batch / (t16 * 1e12)
    pre = max(batch * tokens(1, n) / rate + head(), (once + n * token * batch) / (tb * 1e12))
    dec, bound = 0, 0
    for c in range(n + 1, n + m):
        x, y = batch * tokens(c, c) / rate + head(), (once + c * token * batch) / (tb * 1e12)
        dec += max(x, y); bound += y > x
    return batch, stored, pre, dec, bound / (m - 1) if m > 1 else float("nan"), batch * m / (pre + dec)
rows, first, seen, part = 0, None, set(), 0
for line in open("table"):
    if line.startswith("model\t"): part += 1; continue
    model, on, f, *v = line.rstrip("\n").split("\t"); n, m = int(v[0]), int(v[1]); got = [float("nan" if x == "-" else x) for x in v[2:]]
    want = project(model, on, f, n, m, *((128, 0) if part == 1 else (32, 4)))
    if f == "W4A16": first = want[-1]
    want = [want[0], want[1] / 1e9, *want[2:], want[-1] / first if first else float("nan")]
    for x, y in zip(got, want): assert abs(x - y) <= 1e-5 * abs(y) or x != x and y != y, (line, want)
    rows += 1; seen.add(want[0] == 0)
assert rows == 6 * 4 * 9 * 8 and seen == {True, False}, rows
PY

# models of one's own: a folder, a file, and the row of the table with the same numbers
py - <<'PY'
import json, os
os.mkdir("hf")
json.dump(dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=8192, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8,
    intermediate_size=28672, vocab_size=32000, tie_word_embeddings=False), open("hf/config.json", "w"))
PY
is 'a folder of which only the config is there' "$(roofline --models hf | tail -n +2 | cut -f2-)" "$(roofline | tail -n +2 | cut -f2-)"
roofline --models prose.h5,gpt2.h5 --prompt 100 --generate 28 --formats W16A16 >own
# data/prose: 8 blocks of 256, 8 heads of 32, 4 of keys; 768; 256 words, tied. gpt2: 2 of 32; 61 words, tied; no gate
ok 'files: linear layers and one table of words at 16 bits' py -c '
rows = [l.split("\t") for l in open("own").read().splitlines()[1:]]
want = [8 * (256 * 256 * 2 + 256 * 128 * 2 + 3 * 256 * 768) + 256 * 256, 2 * (4 * 32 * 32 + 2 * 32 * 128) + 61 * 32]
batch = [(96e9 - 2 * want[0]) // (128 * 2 * 8 * 128 * 2), (96e9 - 2 * want[1]) // (128 * 2 * 2 * 32 * 2)]
for r, w, b in zip(rows, want, batch): assert abs(float(r[6]) - 2e-9 * w) < 1e-5 * float(r[6]) and float(r[5]) == b, (r, w, b)'

roofline --formats W4A16,W4A8 --prompt 8,9 -o r.h5 >text
ok 'the record has the columns of the table' py -c 'import h5py
f = h5py.File("r.h5"); lines = [l.split("\t") for l in open("text").read().splitlines()]
assert f.attrs["ptq_kind"] == "result" and sorted(f) == sorted(lines[0]) and f["batch"].dtype.kind == "i"
for i, c in enumerate(lines[0]):
    got = [x.decode() if isinstance(x, bytes) else x for x in f[c][...]]
    for g, l in zip(got, lines[1:]): assert g == l[i] if isinstance(g, str) else abs(g - float(l[i])) <= 1e-5 * abs(g), (c, g, l)'
ok 'JSON' sh -c 'roofline --json | /usr/bin/python3 -c "import json, sys; v = json.load(sys.stdin); assert len(v[\"rows\"]) == 3 and v[\"rows\"][0][\"batch\"] == 88"'

no 'an unknown accelerator' 2 "--hardware: 'gaudi9' is not known; known are gaudi2" roofline --hardware gaudi2,gaudi9
for f in W4 A8 W0A8 W17A8 W4A4 W4A8x 'W4A8,' ,W4A8 '' 4A8 W-4A8 W4A99999999999999999999; do no "no format: '$f'" 2 '--formats: ' roofline --formats "$f"; done
for length in 0 -1 1.5 x '' '1,' 1048577 18446744073709551616; do no "no length: '$length'" 2 '--prompt: ' roofline --prompt "$length"; done
no 'no list of models' 2 "--models: 'a,,b' is not a list" roofline --models a,,b
no 'a list without end' 2 '--hardware: has 1001 values, expected at most 1000' roofline --hardware "$(yes gaudi2 | head -n 1001 | paste -sd,)"
no 'no such model' 2 "^roofline: --models: 'llama-9' is neither a folder, nor a file, nor one of llama-2-7b, llama-2-70b, .*, qwen2-72b$" roofline --models llama-9
mkdir empty
py - <<'PY'
import json, os
text = json.load(open("hf/config.json"))
os.mkdir("sees")
vision = dict(model_type="clip_vision_model", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, image_size=336, patch_size=14)
json.dump(dict(model_type="llava", image_token_index=1, text_config=text, vision_config=vision), open("sees/config.json", "w"))
PY
is 'of a model that sees images the language model' "$(roofline --models sees | tail -n +2 | cut -f2-)" "$(roofline --models hf | tail -n +2 | cut -f2-)"
no 'a folder without a config' 1 '^roofline: empty/config.json: ' roofline --models empty
cp -r hf broken && echo '{' >broken/config.json
no 'a broken config' 1 '^roofline: broken: /config: not JSON' roofline --models broken
sample-tokens -q --length 8 --ctx 8 prose.h5 -o tokens.h5
no 'a file of another kind' 1 '^roofline: tokens.h5: .*model' roofline --models tokens.h5
no 'an operand' 2 'operand|argument' roofline gaudi2
no 'no text to standard output twice' 2 'standard output' roofline -o -
done_testing
