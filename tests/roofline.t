#!/bin/sh
# roofline.t -- projected throughput, compared with results by hand and with a second calculation, and errors
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
value() { awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }'; }

# By hand, Llama 2 70B in W4A16 on Gaudi 2, 1024 tokens in and out:
# weights: 80 (8192 (2·8192 + 2·1024) + 3·8192·28672) = 68.4522e9 of 4 + 20/128 bits, and two tables of 32000 · 8192 at
# 16 bits: 36.611e9 bytes.
# batch: 2·80·1024 keys and values of 2 bytes are 327680 bytes per token, 671.1e6 per sequence;
# (96e9 - 36.611e9) / 671.1e6 = 88.5.
# prefill: 88 (2·68.4522e9·1024 + 2·80·8192·1024·1025)/432e12 = 28.837 s, and 0.0001 s for the head.
roofline >hand
is 'by hand: batch' "$(value batch <hand)" 88
is 'by hand: gigabytes' "$(value weight_gb <hand)" 36.611
is 'by hand: prefill' "$(value prefill_s <hand)" 28.8371
# W8A8: 68.4522e9 + 2·262.144e6·2 bytes; (96 - 69.4996)e9 / (163840 · 2048) = 78.97.
# Memory traffic of a step: 68.4522e9 + 0.5243e9 + 78·163840·c bytes, c from 1025 to 2047, at 2.45e12 bytes per second:
# 1023·28.1537e-3 + 78·163840·1571328/2.45e12 = 36.997 s
roofline --formats W8A8 >hand
is 'by hand: W8A8' "$(value batch <hand) $(value weight_gb <hand) $(value decode_s <hand) $(value memory_bound <hand)" \
	'78 69.4996 36.997 1'
# One generated token: no decoding
roofline --generate 1 --prompt 7 >hand
is 'one generated token: the prefill computes it' "$(value decode_s <hand) $(value memory_bound <hand)" '0 -'
roofline --formats W16A16 >hand
is '16 bits do not fit, as in the paper' \
	"$(value batch <hand) $(value tokens_per_second <hand) $(value speedup <hand)" '0 0 -'
# Mixtral 8x7B: 32 (4096 (2·4096 + 2·1024) + 8·4096 + 8·3·4096·14336) = 46.4404e9 weights. A token passes through
# attention, the router and two experts, 12.6175e9 weights. Tables of 32000 · 4096. Operations of one sequence:
# 2·12.6175e9·512 + 2·32·4096·512·513, and 2·131.072e6 for the head, times the number of sequences that fit.
mkdir mixtral && echo '{"model_type": "mixtral"}' >mixtral/config.json
roofline --models mixtral --formats W8A8 --hardware h100 --prompt 512 --generate 1 >hand
is 'experts: all are stored' "$(value weight_gb <hand)" 46.9647
ok '... and a token passes through some' awk -v t="$(value prefill_s <hand)" -v b="$(value batch <hand)" 'BEGIN {
	w = b * (2 * 12.617515008e9 * 512 + 2 * 32 * 4096 * 512 * 513) / 1979e12 + b * 2 * 131.072e6 / 989e12
	exit !(b > 100 && t / w - 1 < 1e-5 && 1 - t / w < 1e-5) }'

# --- vision-language models ---
# By hand, Qwen2-VL-7B and an image of 448 pixels: 1024 patches, 256 tokens; encoder 32 (4·1280² + 2·1280·5120) =
# 629.1456e6, projector 5120 (5120 + 3584) = 44.56448e6, patches 1280·3·2·14² = 1.50528e6; language model
# 28·3584 (2·3584 + 2·512 + 3·18944) = 6.525288448e9, two tables of 152064·3584 = 0.544997376e9.
roofline --json --table visual --models qwen2-vl-7b >hand
is 'vision-language: by hand' \
	"$(sed 's/.*"model"/"model"/; s/[{}"]//g; s/].*//' hand)" \
	"model: qwen2-vl-7b, norm: pre, image: 448, views: 1, \
rows: 1024, tokens: 256, visual_parameters: 675215360, language_parameters: 7615283200, \
visual_operations: 1311307202560, language_operations: 3619986341888"
counts() { roofline --table visual --models "$1" --image "$2" | tail -n +2 | cut -f 6 | xargs; }
is '... tiles: 1, 4 and the image, 9 and the image' "$(counts internvl2-8b 448,633,634,950,951,2000)" \
	'256 256 1280 1280 2560 2560'
is '... slices: by area, nearly square, at most 9' \
	"$(counts minicpm-v-2.6 448,449,640,900,1120,1300,3000)" \
	'64 192 320 320 448 640 640'
is '... patches: multiples of 28, from 56 to 3584 pixels' "$(counts qwen2-vl-7b 28,56,100,448,3584,8192)" \
	'4 4 16 256 16384 16384'
is '... one size' "$(counts qwen-vl-chat 28,8192) $(counts glm-4v-9b 28,8192)" '256 256 1600 1600'
is '... norms' "$(roofline --table visual | tail -n +2 | cut -f 1,2 | xargs)" \
	'internvl2-8b pre qwen-vl-chat pre minicpm-v-2.6 pre qwen2-vl-7b pre glm-4v-9b post'
no '... another model' 2 "'llama-2-7b' has no row of --table visual, expected one of internvl2-8b" \
	roofline --table visual --models llama-2-7b
no '... a size of nothing' 2 "'20' is not a side from 28 to 8192" roofline --table visual --image 448,20
no '... no size' 2 "'' is not a side" roofline --table visual --image 448,
no '... an accelerator' 2 '--hardware: --table visual does not use it' roofline --table visual --hardware h100
roofline --image 448 >x 2>err
ok '... an image without them' grep -q 'warning.*--image' err

cp "$top/tests/ref/gpt2.h5" .
model-import -q "$top/data/prose" -o prose.h5
lists='--models llama-2-7b,llama-2-70b,llama-3.1-8b,llama-3.1-70b,qwen2-7b,qwen2-72b
	--hardware gaudi2,gaudi3,h100,h200 --prompt 1,100,3000 --generate 1,2,77'
# shellcheck disable=SC2086
{
	roofline $lists --formats W4A16,w8a8,W4A8,W3A8,W16A16
	roofline $lists --formats W4A16,W4A8,W7A8 --group 32 --kv-bits 4
} >table
ok 'the same as a plain calculation, matrix by matrix and token by token' py plain

# other models: a folder and a file, compared with the row of the table with the same numbers
py make
is 'a folder that has only config.json' \
	"$(roofline --models hf | tail -n +2 | cut -f2-)" "$(roofline | tail -n +2 | cut -f2-)"
roofline --models prose.h5,gpt2.h5 --prompt 100 --generate 28 --formats W16A16 >own
# data/prose: 8 blocks of width 256, 8 heads of 32, 4 heads of keys, MLP width 768, 256 tokens, tied head.
# gpt2: 2 blocks of width 32, 61 tokens, tied head, no gate
ok 'files: linear layers and one token table at 16 bits' py file_sizes

roofline --formats W4A16,W4A8 --prompt 8,9 -o r.h5 >text
ok 'the record has the columns of the table' py record
ok 'JSON' \
	sh -c 'roofline --json |
		py three_rows'

is 'an accelerator by its numbers' "$(roofline --hardware own=80:3.35:989:1979)" \
	"$(roofline --hardware h100 | sed 's/h100/own/')"
no '... three numbers' 2 "--hardware: 'own=80:3.35:989' is not known" roofline --hardware own=80:3.35:989
no '... too much memory' 2 "--hardware: 'own=1e10:3:1:1' is not known" roofline --hardware own=1e10:3:1:1
no '... no bandwidth' 2 "--hardware: 'own=80:0:989:1' is not known" roofline --hardware own=80:0:989:1
no 'an unknown accelerator' 2 "--hardware: 'gaudi9' is not known, expected one of gaudi2" \
	roofline --hardware gaudi2,gaudi9
for f in W4 A8 W0A8 W17A8 W4A4 W4A8x 'W4A8,' ,W4A8 '' 4A8 W-4A8 W4A99999999999999999999; do
	no "an invalid format: '$f'" 2 '--formats: ' roofline --formats "$f"
done
for length in 0 -1 1.5 x '' '1,' 1048577 18446744073709551616; do
	no "an invalid length: '$length'" 2 '--prompt: ' roofline --prompt "$length"
done
no 'an invalid list of models' 2 "--models: 'a,,b' is not a list" roofline --models a,,b
no 'too long a list' 2 '--hardware: has 1001 values, expected at most 1000' \
	roofline --hardware "$(yes gaudi2 | head -n 1001 | paste -sd,)"
no 'an unknown model' 2 \
	"^roofline: --models: 'llama-9' is neither a folder, nor a file, nor one of llama-2-7b, .*, qwen2-72b$" \
	roofline --models llama-9
mkdir empty
py folders
is 'a vision-language model: its language model counts' \
	"$(roofline --models sees | tail -n +2 | cut -f2-)" "$(roofline --models hf | tail -n +2 | cut -f2-)"
no 'a folder without config.json' 1 '^roofline: empty/config.json: ' roofline --models empty
cp -r hf broken && echo '{' >broken/config.json
no 'an invalid config.json' 1 '^roofline: broken: /config: not JSON' roofline --models broken
sample-tokens -q --length 8 --ctx 8 prose.h5 -o tokens.h5
no 'a file of another kind' 1 '^roofline: tokens.h5: .*model' roofline --models tokens.h5
no 'an operand' 2 'operand|argument' roofline gaudi2
no 'table and record both on standard output' 2 'standard output' roofline -o -
done_testing
