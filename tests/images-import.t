#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# pictures in the place of ids; bad pictures, processors, models and tokens files
export OMP_NUM_THREADS=1
pictures=$top/tests/fuzz/seeds/image
cp "$top/tests/images/llava.h5" .
cp "$pictures/rgb8.png" a.png
cp "$pictures/rgb.jpg" b.jpg
cp "$pictures/rgb.ppm" c.ppm
printf 'A \001 and \001\n' >text
tokenize --bytes text -o text.h5
import() { images-import -q --model "${MODEL:-llava.h5}" --tokens "${TOKENS:-text.h5}" "$@"; }

# --- what stands in the file ---
cat >check.py <<'PY'
import h5py, hashlib, numpy as np, sys
def check(before, after, counts, grids, placeholder=1, sizes=None):
    """The file against the definition, id by id."""
    with h5py.File(before) as a, h5py.File(after) as b:
        ids, bytes_, modality, span, moved, k = [], [], [], [], {}, 0
        for i, t in enumerate(a["tokens"][...]):
            moved[i] = len(ids)
            n = counts[k] if t == placeholder else 1
            if t == placeholder: span.append([len(ids), n]); k += 1
            ids += [t] * n
            bytes_ += [0 if t == placeholder else a["bytes"][i]] * n if "bytes" in a else []
            modality += [int(t == placeholder)] * n
        moved[len(a["tokens"])] = len(ids)
        assert k == len(counts) == len(b["images"])
        assert b["tokens"][...].tolist() == ids and b["tokens"].dtype == "i4"
        assert b["modality"][...].tolist() == modality and b["modality"].dtype == "u1"
        assert b["image_span"][...].tolist() == span and b["image_span"].dtype == "i8"
        assert b["image_grid"][...].tolist() == grids and b["image_grid"].dtype == "i4"
        assert "bytes" not in a or (b["bytes"][...].tolist() == bytes_ and b["bytes"].dtype == "u2")
        assert "sequence" not in a or b["sequence"][...].tolist() == [moved[i] for i in a["sequence"][...]]
        was, now = dict(a["tokens"].attrs), dict(b["tokens"].attrs)
        assert now.pop("tokens_sha256") == hashlib.sha256(b["tokens"][()].astype("<i4").tobytes()).hexdigest() != was.pop("tokens_sha256", None) and now == was
        assert ("note" in a) == ("note" in b)
        for i, s in enumerate(sizes or []): assert b[f"images/{i}"].shape == (*s, 3) and b[f"images/{i}"].dtype == "u1"
        h = b.attrs["history"].splitlines()
        assert h[0].startswith("images-import ") and h[1:] == a.attrs["history"].splitlines(), h
exec(sys.argv[1])
PY
ok 'two pictures' import a.png b.jpg -o two.h5
ok '... as defined' py check.py 'check("text.h5", "two.h5", [16, 16], [[1, 4, 4]] * 2, sizes=[(13, 11)] * 2)'
ok 'a picture as it is decoded' py -c '
import h5py
raw = open("c.ppm", "rb").read()[-13 * 11 * 3:]
assert h5py.File("two.h5")["images/0"][...].tobytes() == raw'
mkfifo fifo; cat a.png >fifo &
ok 'a picture from a named pipe' sh -c 'timeout 300 images-import -q --model llava.h5 --tokens text.h5 fifo b.jpg -o fifo.h5 && h5diff two.h5 fifo.h5'
cp a.png kept.png
no 'a picture on standard input that is standard output' 1 'is an input' sh -c 'exec <a.png; images-import -q --model llava.h5 --tokens text.h5 - b.jpg 1<>a.png'
ok '... is what it was' cmp a.png kept.png
ok 'to a pipe, and a picture from one' sh -c 'cat b.jpg | images-import -q --model llava.h5 --tokens text.h5 a.png - | cat >stream && tokenize --bytes --decode stream >ids && tokenize --bytes --decode two.h5 | cmp - ids'
is '... which says what a token is' "$(tr -dc '\001' <ids | wc -c)" 32
py - <<'PY'
import h5py, json, shutil
def change(path, make, source="llava.h5"):
    shutil.copy(source, path)
    with h5py.File(path, "r+") as f: make(f)
def config(path, root={}, vision={}, processor={}, source="llava.h5"):
    def make(f):
        c, p = json.loads(f["config"][()]), json.loads(f["processor"][()])
        c.update(root); p.update(processor)
        if vision is None: del c["vision_config"]
        else: c["vision_config"].update(vision)
        for name, v in ("config", c), ("processor", p):
            del f[name]; f[name] = json.dumps(v)
    change(path, make, source)
config("full.h5", dict(vision_feature_select_strategy="full"))
config("siglip.h5", vision=dict(model_type="siglip_vision_model"))
config("siglip-full.h5", dict(vision_feature_select_strategy="full"), dict(model_type="siglip_vision_model"),
       dict(image_processor_type="SiglipImageProcessor", size=dict(height=16, width=16), do_center_crop=False))
qwen = dict(image_processor_type="Qwen2VLImageProcessor", do_center_crop=None, crop_size=None, size=None, patch_size=4, merge_size=2, min_pixels=64, max_pixels=256)
config("qwen.h5", dict(model_type="qwen2_vl", image_token_id=1), dict(model_type="qwen2_vl_vision", patch_size=4, spatial_merge_size=2), qwen)
change("whole.h5", lambda f: (f.pop("processor"), f.__setitem__("processor", json.dumps(dict(image_processor=dict(
    image_processor_type="CLIPImageProcessorFast", size=16, crop_size=16), processor_class="LlavaProcessor")))))
# what is refused
change("none.h5", lambda f: f.pop("processor"))
change("bare.h5", lambda f: f.pop("config"))
config("text-model.h5", dict(model_type="llama"))
config("tower.h5", vision=dict(model_type="vit"))
config("strategy.h5", dict(vision_feature_select_strategy="last"))
config("side.h5", vision=dict(image_size=20))
config("patch.h5", vision=dict(patch_size=0))
config("empty.h5", dict(vision_feature_select_strategy="default"), dict(model_type="siglip_vision_model", patch_size=16))
config("vocab.h5", dict(text_config=dict(vocab_size=300)))
for name, setting in dict(kind=dict(image_processor_type="ViTImageProcessor"), nameless=dict(image_processor_type=None), key=dict(do_sharpen=True),
        pad=dict(do_pad=True), resample=dict(resample=9), size=dict(size=dict(longest_edge=3)), both=dict(size=dict(shortest_edge=16, longest_edge=99)),
        mean=dict(image_mean=[1, 2]), std=dict(image_std=0), factor=dict(rescale_factor=-1), flag=dict(do_resize="yes"), crop=dict(crop_size=dict(height=5)),
        large=dict(do_center_crop=False, size=65536), crops=dict(crop_size=65536)).items():
    config(f"p-{name}.h5", processor=setting)
config("q-patch.h5", processor=dict(patch_size=8), source="qwen.h5")
config("q-frames.h5", processor=dict(temporal_patch_size=3), source="qwen.h5")
config("q-clip.h5", dict(model_type="qwen2_vl", image_token_id=1), dict(model_type="qwen2_vl_vision", patch_size=4, spatial_merge_size=2))
config("q-less.h5", processor=dict(min_pixels=999), source="qwen.h5")
config("q-whole.h5", processor=dict(do_resize=False), source="qwen.h5")
change("not-json.h5", lambda f: (f.pop("processor"), f.__setitem__("processor", "{")))
change("note.h5", lambda f: f.__setitem__("note", [1]), "text.h5")
change("sequence.h5", lambda f: f.__setitem__("sequence", [0, 3, 4, 10]), "text.h5")
change("text-only.h5", lambda f: (f.pop("bytes"), f.__setitem__("modality", [0] * 10)), "text.h5")
change("index.h5", lambda f: f.__setitem__("index", list(range(10))), "text.h5")
change("position.h5", lambda f: f.__setitem__("position", list(range(10))), "text.h5")
change("modality.h5", lambda f: f.__setitem__("modality", [0, 0, 1] + [0] * 7), "text.h5")
PY
each() {	# each MODEL COUNTS GRIDS: two pictures of 13 x 11 and 1 x 1
	MODEL=$1.h5 import a.png "$pictures/pixel.png" -o out.h5 && py check.py "check('text.h5', 'out.h5', $2, $3)"
}
ok 'LLaVA, CLIP, every row' each full '[17, 17]' '[[1, 4, 4]] * 2'
ok 'LLaVA, SigLIP, but for the first patch' each siglip '[15, 15]' '[[1, 4, 4]] * 2'
ok 'LLaVA, SigLIP, every patch' each siglip-full '[16, 16]' '[[1, 4, 4]] * 2'
ok 'Qwen2-VL: as many as a picture has patches, by four' each qwen '[2, 1]' '[[1, 4, 2], [1, 2, 2]]'
ok 'processor_config.json' each whole '[16, 16]' '[[1, 4, 4]] * 2'
for f in note sequence text-only; do
	ok "tokens with more: $f" sh -c "images-import -q --model llava.h5 --tokens $f.h5 a.png b.jpg -o out.h5"
	ok '... as defined' py check.py "check('$f.h5', 'out.h5', [16, 16], [[1, 4, 4]] * 2)"
done
ok 'another vocabulary, by force' images-import -q --force-tokens --model vocab.h5 --tokens text.h5 a.png b.jpg -o out.h5
ok '... as defined' py check.py "check('text.h5', 'out.h5', [16, 16], [[1, 4, 4]] * 2)"

# --- pictures and placeholders that do not fit, models, processors ---
no 'a picture too few' 1 'text.h5: /tokens: has 2 placeholders \(id 1\), and there is 1 picture' import a.png -o out
no 'a picture too many' 1 'has 2 placeholders \(id 1\), and there are 3 pictures' import a.png a.png a.png -o out
no 'no model' 2 '--model FILE is expected' images-import --tokens text.h5 a.png
no 'no tokens' 2 '--tokens FILE is expected' images-import --model llava.h5 a.png
with() { no "$1" 1 "$3" env MODEL="$2" sh -c 'images-import -q --model $MODEL.h5 --tokens text.h5 a.png b.jpg -o out'; }
with 'a model without a processor' none 'none.h5: /processor: is missing'
with 'a model without a config' bare '/config: is missing; a model needs its config.json'
with 'a model of text' text-model '/config: is not of a vision-language model'
with 'another tower' tower "unknown model_type 'vit'; known are clip_vision_model"
with 'another strategy' strategy "'vision_feature_select_strategy' is 'last', expected default or full"
with 'a size that the tower does not take' side 'a.png: side.h5: /processor: makes 16 x 16 pixels of a picture of 13 x 11; the vision tower takes 20 x 20'
with 'no patch' patch "'patch_size' must be a whole number from 1"
with 'no token left' empty 'a.png: has 1 x 1 patches, which leave no token'
with 'tokens of another vocabulary' vocab 'made for a vocabulary of 256, vocab.h5 has 300'
with 'a processor that is not known' p-kind "/processor: image_processor_type 'ViTImageProcessor' is not known"
with 'a processor without a name' p-nameless 'names no image_processor_type'
with 'a setting that is not known' p-key "'do_sharpen' is a setting of an image processor that is not known"
with 'padding that CLIP has not' p-pad "'do_pad' is true"
with 'a filter that is not known' p-resample "'resample' must be a whole number from 0 to 5"
with 'no size' p-size "'size' must have"
with 'two edges' p-both "'size' must have 'height' and 'width', or 'shortest_edge' alone"
with 'two means' p-mean "'image_mean' must be a number or three"
with 'a deviation of 0' p-std "'image_std' must be"
with 'a negative factor' p-factor "'rescale_factor' must be a positive number"
with 'a word for a flag' p-flag "'do_resize' must be true or false"
with 'half a crop' p-crop "'crop_size' must have 'height' and 'width'"
with 'too large a picture' p-large 'a.png: .*expected at most 2\^26'
with 'too large a crop' p-crops "'crop_size' is 65536 x 65536, expected at most 2\^26"
with 'a processor of other frames' q-frames 'makes patches of 4 pixels of 3 frames, 2 x 2 of them a token; the model takes 4 of 2'
with 'a processor of other patches' q-patch 'makes patches of 8 pixels of 2 frames, 2 x 2 of them a token; the model takes 4 of 2, and 2 x 2'
with 'a processor of another kind' q-clip 'is of CLIPImageProcessor, expected Qwen2VLImageProcessor'
with 'more pixels at least than at most' q-less 'at least 999 pixels and at most 256'
with 'pictures that have no whole patches' q-whole "'do_resize' is false, and a picture of 13 x 11 pixels has no whole patches of 8"
for s in '18 16' '16 18'; do
	{ printf 'P6 %s 255\n' "$s"; head -c 864 /dev/zero; } >whole.ppm
	no "... of one side, ${s% *} x ${s#* }" 1 "a picture of ${s#* } x ${s% *} pixels has no whole patches of 8" images-import -q --model q-whole.h5 --tokens text.h5 whole.ppm whole.ppm -o out
done
with 'a processor that is no JSON' not-json 'not-json.h5: /processor: not valid JSON'
for f in index position; do no "tokens with /$f" 1 "$f.h5: /$f: tokens have their places already" import --tokens $f.h5 a.png b.jpg -o out; done
no 'tokens that are visual' 1 '/modality: token 2 is visual, but of no picture' import --tokens modality.h5 a.png b.jpg -o out
no 'tokens with pictures' 1 'two.h5: /images: has images already' import --tokens two.h5 a.png b.jpg -o out
no 'no picture' 1 'text: is no picture that is read' import a.png text -o out
no 'an elongated picture' 1 'long.ppm: qwen.h5: /processor: takes no picture whose one side is more than 200 times' sh -c \
	"{ printf 'P6 201 1 255 '; head -c 603 /dev/zero; } >long.ppm; images-import -q --model qwen.h5 --tokens text.h5 a.png long.ppm -o out"

# --- pictures that are damaged ---
one() { images-import -q --model llava.h5 --tokens one.h5 "$1" -o out; }
printf '\001' | tokenize --bytes -o one.h5
no '16-bit gray' 1 'gray16.png: is a PNG of 16-bit gray' one "$pictures/gray16.png"
no 'CMYK' 1 'cmyk.jpg: is a JPEG of CMYK' one "$pictures/cmyk.jpg"
cat >damage.py <<'PY'
import os, struct, subprocess, sys, zlib
S = sys.argv[1]
def run(raw, name):
    open(name, "wb").write(raw)
    p = subprocess.run(["images-import", "-q", "--model", "llava.h5", "--tokens", "one.h5", name, "-o", "out"], capture_output=True, text=True)
    assert p.returncode in (0, 1), (name, p.returncode, p.stderr)
    assert p.returncode == 0 or (p.stderr.count("\n") == 1 and p.stderr.startswith(f"images-import: {name}: ") and not os.path.exists("out")), p.stderr
    if os.path.exists("out"): os.unlink("out")
    return p
def cuts(name, step):
    raw = open(f"{S}/{name}", "rb").read()
    for n in range(0, len(raw), step): assert run(raw[:n], "cut").returncode == 1, (name, n)
def flips(name, step):
    raw = open(f"{S}/{name}", "rb").read()
    for n in range(0, len(raw), step):
        assert run(raw[:n] + bytes([raw[n] ^ 1 << n % 8]) + raw[n + 1:], "flipped").returncode == 1, (name, n)
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(w, h, depth, colour, data, more=b"", interlace=0):
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlace)) + more + chunk(b"IDAT", data) + chunk(b"IEND", b""))
def says(raw, what): said = run(raw, "bad").stderr; assert what in said, (what, said)
def claims():
    few = "its pixels cannot be in so few bytes"
    says(png(8000, 8000, 8, 2, zlib.compress(b"\0" * 99)), few)
    says(png(8000, 8000, 16, 6, zlib.compress(b"\0" * 99), interlace=1), few)
    says(png(1 << 30, 1 << 30, 8, 2, b""), "more pixels than the 2^26")
    says(png(8193, 8192, 1, 0, zlib.compress(b"\0" * 1025 * 8192)), "more pixels than the 2^26")
    says(png(0, 5, 8, 2, b""), "damaged PNG")
    says(png(5, 5, 8, 2, zlib.compress(b"\0" * 70)), "damaged PNG")
    says(png(5, 5, 8, 3, zlib.compress(b"\0" * 30)), "damaged PNG")                 # no palette
    says(png(5, 5, 3, 2, zlib.compress(b"\0" * 90)), "damaged PNG")
    jpeg = open(f"{S}/rgb.jpg", "rb").read(); at = jpeg.index(b"\xff\xc0") + 5
    says(jpeg[:at] + struct.pack(">HH", 60000, 1000) + jpeg[at + 4:], few)
    says(jpeg[:at] + struct.pack(">HH", 60000, 60000) + jpeg[at + 4:], "more pixels than the 2^26")
    says(jpeg[:at] + struct.pack(">HH", 200, 200) + jpeg[at + 4:], "damaged JPEG")
    says(b"P6 8000 8000 255\n" + b"x" * 99, "cut short"); says(b"P6 99999 99999 255\n", "more pixels"); says(b"P5 99999999999999999999 1 255\n", "more pixels"); says(b"P6 1 1000000000 255\n", "more pixels"); says(b"P5 1000000000 0 255\n", "no pixels")
    says(b"P5 2 2 255\nabcde", "goes on behind its pixels"); says(b"P5 2 2 65535\nabcdefgh", "maximum is not 255"); says(b"P5 2 2 255", "does not end in a blank")
    says(b"P5", "no picture"); says(b"P5 #", "no pixels"); says(b"", "no picture"); says(b"\xff\xd8\xff", "JPEG"); says(b"P3 1 1 255\n1 2 3\n", "no picture")
def scans():
    """A progressive JPEG whose last scan comes again and again."""
    raw = open(f"{S}/progressive.jpg", "rb").read(); at = raw.rindex(b"\xff\xda")
    says(raw[:-2] + raw[at:-2] * 200 + raw[-2:], "JPEG")
exec(sys.argv[2])
PY
damage() { ok "$1" py damage.py "$pictures" "$2"; }
damage 'PNG, cut' 'cuts("rgb8.png", 47); cuts("palette4-interlaced.png", 31)'
damage 'PNG, a bit flipped' 'flips("rgb8.png", 37); flips("palette-alpha.png", 19)'
damage 'JPEG, cut' 'cuts("rgb.jpg", 67); cuts("progressive.jpg", 59)'
damage 'PPM, cut' 'cuts("rgb.ppm", 89)'
damage 'headers that claim more than there is' 'claims()'
damage 'scans without end' 'scans()'
ok 'PNG of 2^22 black dots in 600 bytes' py -c 'exec(open("damage.py").read().replace("exec(sys.argv[2])", ""))
assert run(png(2048, 2048, 1, 0, zlib.compress(b"\0" * 257 * 2048, 9)), "dots").returncode == 0' "$pictures"

# --- what readers of such a file refuse ---
py - <<'PY'
import h5py, numpy as np, shutil
def change(path, make):
    shutil.copy("two.h5", path)
    with h5py.File(path, "r+") as f: make(f)
def put(f, path, v):
    if path in f: del f[path]
    f[path] = v
span, grid, z = "image_span", "image_grid", np.zeros
I = lambda *v: np.array(v, "i8").reshape(-1, 2)
change("no-span.h5", lambda f: f.pop(span)); change("no-grid.h5", lambda f: f.pop(grid)); change("no-images.h5", lambda f: f.pop("images"))
change("one-image.h5", lambda f: f.pop("images/1")); change("three-images.h5", lambda f: put(f, "images/2", f["images/1"][...]))
change("far.h5", lambda f: put(f, span, I(2, 16, 23, 18))); change("overlap.h5", lambda f: put(f, span, I(2, 16, 17, 16)))
change("order.h5", lambda f: put(f, span, I(23, 16, 2, 16))); change("none.h5", lambda f: put(f, span, I(2, 16, 23, 0)))
change("minus.h5", lambda f: put(f, span, I(-1, 16, 23, 16))); change("huge.h5", lambda f: put(f, span, I(2, 1 << 62, 23, 16)))
change("shifted.h5", lambda f: put(f, span, I(3, 16, 23, 16))); change("short.h5", lambda f: put(f, span, I(2, 16, 23, 15)))
change("no-modality.h5", lambda f: f.pop("modality")); change("two.sequences.h5", lambda f: put(f, "sequence", np.array([0, 9, 40])))
change("channels.h5", lambda f: put(f, "images/1", z((2, 2, 4), "u1"))); change("flat.h5", lambda f: put(f, "images/1", z((2, 2), "u1")))
change("float.h5", lambda f: put(f, "images/1", z((2, 2, 3), "f4"))); change("zero.h5", lambda f: put(f, "images/1", z((2, 0, 3), "u1")))
change("no-patch.h5", lambda f: put(f, grid, np.array([[1, 4, 4], [1, 0, 4]], "i4"))); change("grids.h5", lambda f: put(f, grid, np.ones((3, 3), "i4")))
PY
refused() { no "tokens: $1" 1 "$1.h5: $2" tokenize -q --bytes --decode "$1.h5" -o out; }
refused no-span '/image_span: .*missing|/image_span: '
refused no-grid '/image_grid: '
refused no-images '/images/0: is missing, /image_span has the places of 2 images'
refused one-image '/images/1: is missing'
refused three-images '/images/2: has no place'
refused far '/image_span: image 1 has tokens 23 and 18 more, expected one at least, among the 40'
refused overlap '/image_span: image 1 begins before the one before it ends, at token 18'
refused order '/image_span: image 1 begins before'
refused none '/image_span: image 1 has tokens 23 and 0 more'
refused minus '/image_span: image 0 has tokens -1'
refused huge '/image_span: image 0 has tokens 2 and 4611686018427387904 more'
refused shifted '/modality: token 2 is visual, and in no span'
refused short '/modality: token 38 is visual, and in no span'
refused no-modality "/modality: token 2 is text, and one of an image's"
refused two.sequences '/image_span: image 0 has tokens of two sequences'
refused channels '/images/1: has shape'
refused flat '/images/1: '
refused float '/images/1: is f32'
refused zero '/images/1: (has no pixels|is an empty|has)'
refused no-patch '/image_grid: image 1 has 0, expected frames, rows and columns'
refused grids '/image_grid: has shape'
is 'nothing is left behind' "$(find . -name '.ptq*' -o -name out)" ''
done_testing
