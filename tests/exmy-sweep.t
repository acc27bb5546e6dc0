#!/bin/sh
# exmy-sweep.t -- errors of number formats over sigma, lists of values, channels of models; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py make

# sigma 0.25: the errors were computed by an independent quadrature
exmy-sweep --tsv --sigma 0.25 --formats int5,e1m3,e2m2,e3m1,e4m0,nf5 >curve
is 'errors at sigma 0.25' "$(awk 'NR > 1 { printf "%s %.4e ", $1, $4 }' curve)" \
	'int5 3.7037e-04 e1m3 3.7037e-04 e2m2 2.1289e-04 e3m1 6.6613e-04 e4m0 2.3606e-03 nf5 1.6935e-04 '
is 'errors with power-of-two scales and with divided scales' "$(exmy-sweep --tsv --sigma 0.25 --formats mxfp4,nvfp4 \
	--table curve | awk 'NR > 1 { printf "%s %.4e ", $1, $4 }')" \
	'mxfp4 1.4500e-03 nvfp4 9.1415e-04 '
is '... per channel nvfp4 equals e2m1' "$(exmy-sweep --tsv --formats nvfp4 --table error w.h5 | cut -f4)" \
	"$(exmy-sweep --tsv --formats e2m1 --table error w.h5 | cut -f4)"
exmy-sweep --tsv --sigma 0.12:0.28:0.005 >curve
is 'E2Mx is the best format of 5 and of 6 bits for all sigmas of models' "$(
	awk 'NR > 1 && $2 > 4 && (!(($2, $3) in e) || $4 < e[$2, $3]) { e[$2, $3] = $4; f[$2, $3] = $1 }
		END { for (k in f) print f[k] }' curve | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }'
)" '33 e2m2 33 e2m3 '
exmy-sweep --tsv --table crossover --formats e3m0,e2m1,e1m2 >cross
is '4 bits: E3M0 is better below 0.1244' "$(awk '$1 == "e3m0" && $2 == "e2m1" { printf "%.4f", $4 }' cross)" 0.1244
for t in best crossover; do
	exmy-sweep --tsv --table $t --formats e3m0,e2m1,e1m2 -o all.h5 >with
	exmy-sweep --tsv --table $t --formats e3m0,e2m1,e1m2 >without
	ok "the table $t, with a file and without" sh -c 'cmp with without && [ "$(wc -l <with)" -gt 1 ]'
done
is '... the file has all tables' "$(h5ls all.h5 | cut -d ' ' -f 1 | xargs)" 'best crossover curve values'
ok 'a plot of curves, and another table' exmy-sweep --tsv --table values --formats e3m0,e2m1,e1m2 --plot c.svg
warns 'a sample of no printed table' 'without effect here: --monte-carlo .only --table curve has it.' \
	exmy-sweep --tsv --table best --formats e3m0,e2m1,e1m2 --monte-carlo 10
exmy-sweep --tsv --sigma 0.1,0.2 --formats e2m2,int4 --monte-carlo 20000 --seed 7 >sampled
ok 'samples lie within four standard errors' awk 'NR > 1 && ($6 - $4) ^ 2 > 16 * $7 ^ 2 { exit 1 }' sampled
ok 'a sample has a standard error' awk 'NR > 1 && !($7 > 0) { exit 1 }' sampled

# --- a uniform density ---
formats=e1m1,e1m2,e1m3,e1m4,e2m1,e2m2,e2m3,e2m4,e3m1,e3m2,e3m3,int4,nf4,uint3
exmy-sweep --json --density uniform --formats $formats --monte-carlo 100000 >curve.json
exmy-sweep --json --table values --formats $formats >values.json
ok 'uniform weights: errors from gaps between values, four times less with a bit more of mantissa; samples' \
	py uniform curve.json values.json
exmy-sweep -q --density uniform --formats $formats -o uniform.h5
is '... in a file: no best sigma and no crossover' "$(h5ls uniform.h5 | cut -d ' ' -f 1 | xargs)" 'curve values'
for t in best crossover; do
	no "... nor a table $t" 2 "--density uniform has one sigma, --table $t searches for one" \
		exmy-sweep --tsv --density uniform --table $t
done
no '... nor a plot' 2 '--density uniform has one sigma, --plot draws curves' \
	exmy-sweep --tsv --density uniform --plot x.svg
exmy-sweep --tsv --density uniform --sigma 0.1 --formats e2m1 >line 2>err
ok '... nor --sigma' grep -q 'warning.*--sigma' err

# values: by the lists and rules of docs/format.md, and as the tools read them in a layer
exmy-sweep --json --table values --formats "$(py formats)" >values.json
ok 'values follow the rules and lists of docs/format.md' py values "$top/docs/format.md"
tensor-diff -q -r plain.h5 coded.h5 >differences
is 'the tools read a layer of all codes as these values' \
	"$(awk -F'\t' 'NR > 1 && $1 ~ "^/" { n++; s += $3 } END { print n, s }' differences)" '61 0'
exmy-sweep --tsv --table values --formats nf5,e2m1 >lines; exmy-sweep --formats nf5,e2m1 -o values.h5
ok 'lines have every digit, and so has the file' py every_digit

exmy-sweep --formats e2m2,int5 --band 0.3:0.35 w.h5 -o sweep.h5 2>err
ok 'sigma of channels and error of int5, computed again in numpy' py errors
exmy-sweep -q --tsv --table layer two.h5 >layers
ok 'channels of all layers together' py all_layers
ok 'a layer of zeros is named' grep -q 'zero: is all zero' err
cp sweep.h5 once.h5; exmy-sweep -j 1 -q --formats e2m2,int5 --band 0.3:0.35 - <w.h5 >piped.h5
ok 'a pipe gives the same' h5diff --exclude-attribute / once.h5 piped.h5
exmy-sweep -q --tsv --formats e2m2 --plot plot.svg >out
ok 'a plot' grep -q '</svg>' plot.svg
exmy-sweep -q --formats int5,e2m2,e1m3 --plot same.svg -o same.h5
ok '... formats with the same error are one line' grep -q 'int5 = e1m3' same.svg
ok 'no temporary file of the plot is left' test ! -e plot.svg.part

warns 'a density of a table without errors' 'without effect here: --density' \
	exmy-sweep --tsv --table values --density uniform
warns 'formats of the table of layers' 'without effect here: --formats' exmy-sweep -q --tsv --table layer \
	--formats int4 two.h5
no 'an unknown format: the message has the nearest one and the list' 2 "no format 'e2n2'; did you mean e2m2.*nf2..nf8" \
	exmy-sweep --formats e2n2
no 'sigma 0' 2 "0 is not a number from 1e-06 to 10" exmy-sweep --tsv --sigma 0.1,0
no 'a negative sigma' 2 "-0.1 is not a number from" exmy-sweep --tsv --sigma -0.1:0.5:0.1
no 'junk as sigma' 2 "is not a list of numbers" exmy-sweep --tsv --sigma 0.1,x
no 'an infinite weight' 1 'a/weight: (row 5 )?holds' exmy-sweep --tsv inf.h5
no 'a plot of an unknown kind' 2 'ends in .svg' exmy-sweep --tsv --plot x.gif
no 'a plot in a folder that does not exist' 1 'nowhere/x.svg: cannot create a file in its folder' \
	exmy-sweep -q --tsv --plot nowhere/x.svg
no 'a file that does not exist' 1 'nothing.h5' exmy-sweep --tsv nothing.h5
done_testing
