#!/usr/bin/env bash
# readme.t -- the README: its commands run as printed, its table is current, its links lead to files
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
ln -s "$top/data" "$top/pipelines" .

# Blocks of commands in their order: a block uses files of earlier blocks.
awk '/^```/ { on = $0 == "```sh"; n += on; next } on { print > ("block" n) }' "$top/README.md"
for ((i = 1; ; i++)); do
	[ -e block$i ] || break
	ok "$(head -n 1 block$i) ..." bash -euo pipefail block$i
	cp ok.out out$i
done
is 'the README has five blocks' "$((i - 1))" 5
is 'the first block prints a KL divergence' "$(grep -c '^kl	' out1)" 1
is 'the second block prints the difference of another method' "$(grep -c '^paired_kl_delta_se_windows	' out2)" 1
is 'the third block writes a checkpoint of 4 bits' \
	"$(grep -o 'pack-quantized' checkpoint/config.json | head -n 1) $(echo checkpoint/*.safetensors)" \
	'pack-quantized checkpoint/model.safetensors'
is 'the fourth block prints a KL divergence for each format' \
	"$(cut -d ' ' -f 1 out4 | sort -u | xargs)" 'e2m1 e2m2 int4 int5 nf4 nf5'
is 'the fifth block prints two accuracies' "$(grep -c '^all	528	0\.' out5)" 2

# The output of make demo is printed from the table in docs/results.
shown=$(sed -n "s/^heads='\(.*\)'$/\1/p" "$top/pipelines/dpq-table4.sh")
is 'the table of make demo is that of docs/results' "$(sed -n '/^scheme  order/,/^```/p' "$top/README.md" | sed '$d')" \
	"$(cd "$top/pipelines/lib" &&
		awk -v shown="$shown" -f numbers.awk -f show.awk ../../docs/results/dpq-table4-prose.tsv)"

# Links of all pages lead to existing files and headings.
is 'no link is dead' "$(py dead_links "$top")" ''
done_testing
