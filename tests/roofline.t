#!/bin/sh
# roofline.t -- projected throughput: numbers worked out by hand, a plain calculation of its own matrix by matrix, and
# what is refused
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
value() { awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }'; }

# By hand, Llama 2 70B in W4A16 on Gaudi 2, 1024 in and out: 80 (8192 (2·8192 + 2·1024) + 3·8192·28672) = 68.4522e9
# weights of
# 4 + 20/128 bits and two tables of 32000 · 8192 at 16: 36.611e9 bytes. 2·80·1024 keys and values of 2 bytes: 327680 a
# token, 671.1e6 a sequence; (96e9 - 36.611e9) / 671.1e6 = 88.5. Prefill: 88 (2·68.4522e9·1024 +
# 2·80·8192·1024·1025)/432e12
# = 28.837 s, the head adds 0.0001 s.
roofline >hand
is 'by hand: batch' "$(value batch <hand)" 88
is 'by hand: gigabytes' "$(value weight_gb <hand)" 36.611
is 'by hand: prefill' "$(value prefill_s <hand)" 28.8371
# W8A8: 68.4522e9 + 2·262.144e6·2 bytes; (96 - 69.4996)e9 / (163840 · 2048) = 78.97. Memory for each step: 68.4522e9 +
# 0.5243e9
# + 78·163840·c bytes, c from 1025 to 2047, over 2.45e12: 1023·28.1537e-3 + 78·163840·1571328/2.45e12 = 36.997 s
roofline --formats W8A8 >hand
is 'by hand: W8A8' "$(value batch <hand) $(value weight_gb <hand) $(value decode_s <hand) $(value memory_bound <hand)" \
	'78 69.4996 36.997 1'
# One token out: no decode
roofline --generate 1 --prompt 7 >hand
is 'one token out: the prefill gives it' "$(value decode_s <hand) $(value memory_bound <hand)" '0 -'
roofline --formats W16A16 >hand
is '16 bits do not fit, as the paper says' \
	"$(value batch <hand) $(value tokens_per_second <hand) $(value speedup <hand)" '0 0 -'
# Mixtral 8x7B: 32 (4096 (2·4096 + 2·1024) + 8·4096 + 8·3·4096·14336) = 46.4404e9 weights, of which a token passes those
# of
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
lists='--models llama-2-7b,llama-2-70b,llama-3.1-8b,llama-3.1-70b,qwen2-7b,qwen2-72b
	--hardware gaudi2,gaudi3,h100,h200 --prompt 1,100,3000 --generate 1,2,77'
# shellcheck disable=SC2086
{
	roofline $lists --formats W4A16,w8a8,W4A8,W3A8,W16A16
	roofline $lists --formats W4A16,W4A8,W7A8 --group 32 --kv-bits 4
} >table
ok 'a plain calculation: matrix by matrix, token by token' py plain

# models of one's own: a folder, a file, and the row of the table with the same numbers
py make
is 'a folder of which only the config is there' \
	"$(roofline --models hf | tail -n +2 | cut -f2-)" "$(roofline | tail -n +2 | cut -f2-)"
roofline --models prose.h5,gpt2.h5 --prompt 100 --generate 28 --formats W16A16 >own
# data/prose: 8 blocks of 256, 8 heads of 32, 4 of keys; 768; 256 words, tied. gpt2: 2 of 32; 61 words, tied; no gate
ok 'files: linear layers and one table of words at 16 bits' py file_sizes

roofline --formats W4A16,W4A8 --prompt 8,9 -o r.h5 >text
ok 'the record has the columns of the table' py record
ok 'JSON' \
	sh -c 'roofline --json |
		py three_rows'

no 'an unknown accelerator' 2 "--hardware: 'gaudi9' is not known; known are gaudi2" roofline --hardware gaudi2,gaudi9
for f in W4 A8 W0A8 W17A8 W4A4 W4A8x 'W4A8,' ,W4A8 '' 4A8 W-4A8 W4A99999999999999999999; do
	no "no format: '$f'" 2 '--formats: ' roofline --formats "$f"
done
for length in 0 -1 1.5 x '' '1,' 1048577 18446744073709551616; do
	no "no length: '$length'" 2 '--prompt: ' roofline --prompt "$length"
done
no 'no list of models' 2 "--models: 'a,,b' is not a list" roofline --models a,,b
no 'a list without end' 2 '--hardware: has 1001 values, expected at most 1000' \
	roofline --hardware "$(yes gaudi2 | head -n 1001 | paste -sd,)"
no 'no such model' 2 \
	"^roofline: --models: 'llama-9' is neither a folder, nor a file, nor one of llama-2-7b, .*, qwen2-72b$" \
	roofline --models llama-9
mkdir empty
py folders
is 'of a model that sees images the language model' \
	"$(roofline --models sees | tail -n +2 | cut -f2-)" "$(roofline --models hf | tail -n +2 | cut -f2-)"
no 'a folder without a config' 1 '^roofline: empty/config.json: ' roofline --models empty
cp -r hf broken && echo '{' >broken/config.json
no 'a broken config' 1 '^roofline: broken: /config: not JSON' roofline --models broken
sample-tokens -q --length 8 --ctx 8 prose.h5 -o tokens.h5
no 'a file of another kind' 1 '^roofline: tokens.h5: .*model' roofline --models tokens.h5
no 'an operand' 2 'operand|argument' roofline gaudi2
no 'no text to standard output twice' 2 'standard output' roofline -o -
done_testing
