#!/usr/bin/env bash
# completion.t -- completions of bash and zsh: docs/package/completion.bash
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model-import -q "$top/data/prose" -o model.h5
# shellcheck source=docs/package/completion.bash
. "$top/docs/package/completion.bash"

# offers WORD...: the completions of the last word, on one line
offers() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_ptqtools
	echo "${COMPREPLY[*]}"
}
is 'every tool has completions' "$(complete -p | sed -n 's/.*_ptqtools //p' | sort | paste -sd' ')" \
	"$(cd "$top/bin" && printf '%s\n' *.c | sed 's/\.c$//' | sort | paste -sd' ')"
is 'options' "$(offers dpq-run --scale)" '--scale-dtype --scale-bits --scale-search --scale8'
is 'options that all tools have' "$(offers gar-order --ver)" '--verbose --version'
is 'values' "$(offers dpq-run --scale-search m)" 'minmax mse'
is 'values after =, where bash begins a new word' "$(offers dpq-run --scale-search = m)" 'minmax mse'
is 'all values after =' "$(offers dpq-run --round-first = )" 'no yes'
is 'values in the word of the option, as in zsh' "$(offers dpq-run --scale-search=m)" \
	'--scale-search=minmax --scale-search=mse'
is 'values of a short option' "$(offers gar-order -g '')" 'channel tensor'
is 'formats' "$(offers dpq-run --storage int)" 'int2 int3 int4 int5 int6 int7 int8'
is 'formats and none' "$(offers dpq-run --compute n)" 'nf2 nf3 nf4 nf5 nf6 nf7 nf8 nvfp4 none'
is 'files' "$(offers dpq-run --hessian mod)" model.h5
is 'an operand' "$(offers dpq-run --static-groups mod)" model.h5
is 'nothing for a number' "$(offers dpq-run --scale-bits '')" ''
if command -v h5ls >/dev/null; then
	is 'layers of the file' "$(offers tensor-stats model.h5 --layers 'model/layers/0/mlp/d')" \
		model/layers/0/mlp/down_proj
	is 'patterns of layers' "$(offers tensor-stats model.h5 --layers '*/d')" '*/down_proj'
else skip 'layers of the file' 'h5ls is not installed'
fi
for f in $(_ptqtools_formats); do
	exmy-sweep --formats "$f" --sigma 0.2 --tsv >formats.out 2>&1 || cat formats.out
done >refused
is 'every offered format is valid' "$(cat refused)" ''
if command -v zsh >/dev/null; then
	cat >zshrc <<-Z
		autoload -Uz compinit bashcompinit && compinit -D && bashcompinit
		. '$top/docs/package/completion.bash'
		offers() {
			emulate -L ksh
			COMP_WORDS=("\$@") COMP_CWORD=\$((\$# - 1)) COMPREPLY=()
			_ptqtools
			echo "\${COMPREPLY[*]}"
		}
		offers dpq-run --scale-search=m
		offers dpq-run --storage nf
		offers dpq-run --hessian mod
	Z
	is 'zsh' "$(zsh -f zshrc 2>&1 | paste -sd'|')" \
		'--scale-search=minmax --scale-search=mse|nf2 nf3 nf4 nf5 nf6 nf7 nf8|model.h5'
else skip 'completion in zsh' 'zsh is not installed'
fi
done_testing
