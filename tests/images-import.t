#!/bin/sh
# images-import.t -- images in place of placeholders; errors of images, processors, models and tokens files
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OMP_NUM_THREADS=1
pictures=$top/tests/fuzz/seeds/image
cp "$top/tests/images/llava.h5" .
cp "$pictures/rgb8.png" a.png
cp "$pictures/rgb.jpg" b.jpg
cp "$pictures/rgb.ppm" c.ppm
printf 'A \001 and \001\n' >text
tokenize --bytes text -o text.h5
import() { images-import -q --model "${MODEL:-llava.h5}" --tokens "${TOKENS:-text.h5}" "$@"; }

# --- contents of the result ---
ok 'two images' import a.png b.jpg -o two.h5
ok '... as defined' py 'check("text.h5", "two.h5", [16, 16], [[1, 4, 4]] * 2, sizes=[(13, 11)] * 2)'
ok 'an image has the decoded pixels' py decoded
mkfifo fifo; cat a.png >fifo &
ok 'an image from a named pipe' \
	sh -c 'timeout 300 images-import -q --model llava.h5 --tokens text.h5 fifo b.jpg -o fifo.h5 &&
		h5diff two.h5 fifo.h5'
cp a.png kept.png
no 'an image on standard input that is also standard output' 1 'is an input' \
	sh -c 'exec <a.png; images-import -q --model llava.h5 --tokens text.h5 - b.jpg 1<>a.png'
ok '... is unchanged' cmp a.png kept.png
ok 'a pipe as result, and an image from a pipe' \
	sh -c 'cat b.jpg | images-import -q --model llava.h5 --tokens text.h5 a.png - | cat >stream &&
		tokenize --bytes --decode stream >ids && tokenize --bytes --decode two.h5 | cmp - ids'
is '... with one placeholder per token' "$(tr -dc '\001' <ids | wc -c)" 32
py models
each() {	# each MODEL COUNTS GRIDS: two images of 13 x 11 and 1 x 1
	MODEL=$1.h5 import a.png "$pictures/pixel.png" -o out.h5 && py "check('text.h5', 'out.h5', $2, $3)"
}
ok 'LLaVA, CLIP, every row' each full '[17, 17]' '[[1, 4, 4]] * 2'
ok 'LLaVA, SigLIP, every patch except the first' each siglip '[15, 15]' '[[1, 4, 4]] * 2'
ok 'LLaVA, SigLIP, every patch' each siglip-full '[16, 16]' '[[1, 4, 4]] * 2'
ok 'Qwen2-VL: one token per four patches of an image' each qwen '[2, 1]' '[[1, 4, 2], [1, 2, 2]]'
ok 'processor_config.json' each whole '[16, 16]' '[[1, 4, 4]] * 2'
for f in note sequence text-only; do
	ok "tokens with other members: $f" \
		sh -c "images-import -q --model llava.h5 --tokens $f.h5 a.png b.jpg -o out.h5"
	ok '... as defined' py "check('$f.h5', 'out.h5', [16, 16], [[1, 4, 4]] * 2)"
done
ok 'another vocabulary with --force-tokens' \
	images-import -q --force-tokens --model vocab.h5 --tokens text.h5 a.png b.jpg -o out.h5
ok '... as defined' py "check('text.h5', 'out.h5', [16, 16], [[1, 4, 4]] * 2)"

# --- errors of images and placeholders, models, processors ---
no 'one image too few' 1 'text.h5: /tokens: has 2 placeholders \(id 1\), and there is 1 image' import a.png -o out
no 'one image too many' 1 'has 2 placeholders \(id 1\), and there are 3 images' import a.png a.png a.png -o out
no 'no model' 2 '--model FILE is expected' images-import --tokens text.h5 a.png
no 'no tokens' 2 '--tokens FILE is expected' images-import --model llava.h5 a.png
with() { no "$1" 1 "$3" env MODEL="$2" sh -c 'images-import -q --model $MODEL.h5 --tokens text.h5 a.png b.jpg -o out'; }
with 'a model without a processor' none 'none.h5: /processor: is missing'
with 'a model without a config' bare '/config: is missing; a model needs its config.json'
with 'a model without an encoder' text-model '/config: is not of a vision-language model'
with 'an unknown encoder' tower "unknown model_type 'vit', expected one of clip_vision_model"
with 'an unknown strategy' strategy "'vision_feature_select_strategy' is 'last', expected default or full"
with 'a size that does not fit the encoder' side \
	'a.png: side.h5: /processor: makes 16 x 16 pixels of an image of 13 x 11; the encoder needs 20 x 20'
with 'a patch size of 0' patch "'patch_size' must be a whole number from 1"
with 'an image without a token' empty 'a.png: has 1 x 1 patches, which leave no token'
with 'tokens of another vocabulary' vocab 'made for a vocabulary of 256, vocab.h5 has 300'
with 'an unknown processor' p-kind "/processor: image_processor_type 'ViTImageProcessor' is not known"
with 'a processor without a name' p-nameless 'names no image_processor_type'
with 'an unknown setting' p-key "'do_sharpen' is a setting of an image processor that is not known"
with 'padding, which CLIP does not have' p-pad "'do_pad' is true"
with 'an unknown filter' p-resample "'resample' must be a whole number from 0 to 5"
with 'no size' p-size "'size' must have"
with 'two edges' p-both "'size' must have 'height' and 'width', or 'shortest_edge' alone"
with 'two means' p-mean "'image_mean' must be a number or three"
with 'a deviation of 0' p-std "'image_std' must be"
with 'a negative factor' p-factor "'rescale_factor' must be a positive number"
with 'a text in place of a flag' p-flag "'do_resize' must be true or false"
with 'a crop without a width' p-crop "'crop_size' must have 'height' and 'width'"
with 'too large an image' p-large 'a.png: .*expected at most 2\^26'
with 'too large a crop' p-crops "'crop_size' is 65536 x 65536, expected at most 2\^26"
with 'a processor with another number of frames' q-frames \
	'/processor: patch 4, frames 3, merge 2, expected 4, 2, 2 as in /config'
with 'a processor with another patch size' q-patch \
	'/processor: patch 8, frames 2, merge 2, expected 4, 2, 2 as in /config'
with 'a processor of another kind' q-clip 'is of CLIPImageProcessor, expected Qwen2VLImageProcessor'
with 'a minimum of pixels above the maximum' q-less 'at least 999 pixels and at most 256'
with 'images without whole patches' q-whole \
	"'do_resize' is false, and an image of 13 x 11 pixels has no whole patches of 8"
for s in '18 16' '16 18'; do
	{ printf 'P6 %s 255\n' "$s"; head -c 864 /dev/zero; } >whole.ppm
	no "... on one side, ${s% *} x ${s#* }" 1 "an image of ${s#* } x ${s% *} pixels has no whole patches of 8" \
		images-import -q --model q-whole.h5 --tokens text.h5 whole.ppm whole.ppm -o out
done
with 'a processor that is not JSON' not-json 'not-json.h5: /processor: not valid JSON'
for f in index position; do
	no "tokens that have /$f" 1 "$f.h5: /$f: is present already" import --tokens $f.h5 a.png b.jpg -o out
done
no 'tokens that are visual already' 1 '/modality: token 2 is visual, but of no image' \
	import --tokens modality.h5 a.png b.jpg -o out
no 'tokens that have images already' 1 'two.h5: /images: has images already' import --tokens two.h5 a.png b.jpg -o out
no 'a file that is not an image' 1 'text: is not a supported image file' import a.png text -o out
{ printf 'P6 201 1 255 '; head -c 603 /dev/zero; } >long.ppm
no 'an elongated image' 1 'long.ppm: qwen.h5: /processor: supports images with one side at most 200 times' \
	images-import -q --model qwen.h5 --tokens text.h5 a.png long.ppm -o out

# --- damaged images ---
one() { images-import -q --model llava.h5 --tokens one.h5 "$1" -o out; }
printf '\001' | tokenize --bytes -o one.h5
no '16-bit gray' 1 'gray16.png: is a PNG of 16-bit gray' one "$pictures/gray16.png"
no 'CMYK' 1 'cmyk.jpg: is a JPEG of CMYK' one "$pictures/cmyk.jpg"
damage() { ok "$1" py "$2"; }
damage 'PNG, cut' 'cuts("rgb8.png", 47), cuts("palette4-interlaced.png", 31)'
damage 'PNG, a bit flipped' 'flips("rgb8.png", 37), flips("palette-alpha.png", 19)'
damage 'JPEG, cut' 'cuts("rgb.jpg", 67), cuts("progressive.jpg", 59)'
damage 'PPM, cut' 'cuts("rgb.ppm", 89)'
damage 'headers with sizes beyond the data' 'claims()'
damage 'scans without end' 'scans()'
ok 'PNG of 2^22 black dots in 600 bytes' py black_dots

# --- errors of readers of such a file ---
py faults
refused() { no "tokens: $1" 1 "$1.h5: $2" tokenize -q --bytes --decode "$1.h5" -o out; }
refused no-span '/image_span: .*missing|/image_span: '
refused no-grid '/image_grid: '
refused no-images '/images/0: is missing, /image_span has spans of 2 images'
refused one-image '/images/1: is missing'
refused three-images '/images/2: has no span'
refused far '/image_span: image 1 has first token 23 and 18 tokens, expected at least one of the 40'
refused overlap '/image_span: image 1 begins before the one before it ends, at token 18'
refused order '/image_span: image 1 begins before'
refused none '/image_span: image 1 has first token 23 and 0 tokens'
refused minus '/image_span: image 0 has first token -1'
refused huge '/image_span: image 0 has first token 2 and 4611686018427387904 tokens'
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
is 'no file is left' "$(find . -name '.ptq*' -o -name out)" ''
done_testing
