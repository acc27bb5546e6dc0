#!/bin/sh
# plots.t -- docs/results/plots.sh: every plot there is the plot of its table
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

mkdir -p docs/results
ln -s "$top/pipelines" pipelines
cp "$top"/docs/results/*.tsv "$top/docs/results/plots.sh" docs/results
ok 'plots are drawn again from the tables' docs/results/plots.sh
is '... all that are there' "$(ls docs/results/*.svg)" "$(cd "$top" && ls docs/results/*.svg)"
no '... a plot that is not there' 2 'nosuch: no such plot' docs/results/plots.sh nosuch
# Another gnuplot writes other SVG.
made_by() { sed -n 's/.*Produced by \(GNUPLOT [^<]*[^< ]\).*/\1/p' "$@" | sort -u; }
differ() { for f in docs/results/*.svg; do cmp -s "$f" "$top/$f" || echo "$f"; done; }
by=$(made_by "$top"/docs/results/*.svg)
is '... by one gnuplot' "$(echo "$by" | wc -l)" 1
if [ "$(made_by docs/results/*.svg)" = "$by" ]; then
	is '... equal to those that are there' "$(differ)" ''
else
	skip '... equal to those that are there' "they are by $by"
fi
mkdir before
cp docs/results/*.svg before
sed -i 's/0\.00/0.01/g' docs/results/fp4-prose.tsv docs/results/recipes-prose.tsv
ok '... one, from another table' docs/results/plots.sh fp4-prose
is '... which alone changes' \
	"$(cd before && for f in *; do cmp -s "$f" ../docs/results/"$f" || echo "$f"; done)" fp4-prose.svg
done_testing
