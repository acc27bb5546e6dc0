#!/bin/sh
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py make

# sigma 0.25, by quadrature elsewhere
exmy-sweep --tsv --sigma 0.25 --formats int5,e1m3,e2m2,e3m1,e4m0,nf5 >curve
is 'errors at sigma 0.25' "$(awk 'NR > 1 { printf "%s %.4e ", $1, $4 }' curve)" \
	'int5 3.7037e-04 e1m3 3.7037e-04 e2m2 2.1289e-04 e3m1 6.6613e-04 e4m0 2.3606e-03 nf5 1.6935e-04 '
is 'under a power of two and under a divided scale' "$(exmy-sweep --tsv --sigma 0.25 --formats mxfp4,nvfp4 \
	--table curve | awk 'NR > 1 { printf "%s %.4e ", $1, $4 }')" \
	'mxfp4 1.4500e-03 nvfp4 9.1415e-04 '
is '... of channels: nvfp4 is e2m1' "$(exmy-sweep --tsv --formats nvfp4 --table error w.h5 | cut -f4)" \
	"$(exmy-sweep --tsv --formats e2m1 --table error w.h5 | cut -f4)"
exmy-sweep --tsv --sigma 0.12:0.28:0.005 >curve
is 'E2Mx is the best of 5 and 6 bits wherever models are' "$(
	awk 'NR > 1 && $2 > 4 && (!(($2, $3) in e) || $4 < e[$2, $3]) { e[$2, $3] = $4; f[$2, $3] = $1 }
		END { for (k in f) print f[k] }' curve | sort | uniq -c | awk '{ printf "%s %s ", $1, $2 }'
)" '33 e2m2 33 e2m3 '
exmy-sweep --tsv --table crossover --formats e3m0,e2m1,e1m2 >cross
is 'of 4 bits E3M0 is better below 0.1244' "$(awk '$1 == "e3m0" && $2 == "e2m1" { printf "%.4f", $4 }' cross)" 0.1244
exmy-sweep --tsv --sigma 0.1,0.2 --formats e2m2,int4 --monte-carlo 20000 --seed 7 >sampled
ok 'samples lie within four standard errors' awk 'NR > 1 && ($6 - $4) ^ 2 > 16 * $7 ^ 2 { exit 1 }' sampled
ok 'a sample has a standard error' awk 'NR > 1 && !($7 > 0) { exit 1 }' sampled

# values: of the page, by its rules, and what a layer of these codes is to the tools that read it
exmy-sweep --json --table values --formats "$(py formats)" >values.json
ok 'values by the rules of the page, and its lists' py values "$top/docs/format.md"
tensor-diff -q -r plain.h5 coded.h5 >differences
is 'a layer of all codes is its values, to the tools' \
	"$(awk -F'\t' 'NR > 1 && $1 ~ "^/" { n++; s += $3 } END { print n, s }' differences)" '61 0'
exmy-sweep --tsv --table values --formats nf5,e2m1 >lines; exmy-sweep --formats nf5,e2m1 -o values.h5
ok 'lines say every digit, and the file has them' py every_digit

exmy-sweep --formats e2m2,int5 --band 0.3:0.35 w.h5 -o sweep.h5 2>err
ok 'the sigma of channels and the error of int5, again in numpy' py errors
exmy-sweep -q --tsv --table layer two.h5 >layers
ok 'channels of all layers together' py all_layers
ok 'a layer of zeros is named' grep -q 'zero: is all zero' err
cp sweep.h5 once.h5; exmy-sweep -j 1 -q --formats e2m2,int5 --band 0.3:0.35 - <w.h5 >piped.h5
ok 'a pipe gives the same' h5diff --exclude-attribute / once.h5 piped.h5
exmy-sweep -q --tsv --formats e2m2 --plot plot.svg >out
ok 'a plot' grep -q '</svg>' plot.svg
ok 'no part of a plot is left' test ! -e plot.svg.part

no 'an unknown format is answered with the nearest and the list' 2 "no format 'e2n2'; did you mean e2m2.*nf2..nf8" \
	exmy-sweep --formats e2n2
no 'sigma 0' 2 "0 is not a number from 1e-06 to 10" exmy-sweep --tsv --sigma 0.1,0
no 'a negative sigma' 2 "-0.1 is not a number from" exmy-sweep --tsv --sigma -0.1:0.5:0.1
no 'junk as sigma' 2 "is not a list of numbers" exmy-sweep --tsv --sigma 0.1,x
no 'an infinite weight' 1 'a/weight: (row 5 )?holds' exmy-sweep --tsv inf.h5
no 'a plot of an unknown kind' 2 'ends in .svg' exmy-sweep --tsv --plot x.gif
no 'a plot where there is no folder' 1 'nowhere/x.svg: cannot create a file in its folder' \
	exmy-sweep -q --tsv --plot nowhere/x.svg
no 'a file that is not there' 1 'nothing.h5' exmy-sweep --tsv nothing.h5
done_testing
