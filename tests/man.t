#!/bin/sh
# man.t -- every example of the man pages and of --help runs, in the order of a first session
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
ln -s "$top/data" data && cp "$top/README.md" "$top/tests/ref/gpt2.h5" "$top/tests/images/llava.h5" . &&
	cp "$top/tests/fuzz/seeds/image/rgb8.png" picture.png && cp -R "$top/tests/tiny" instruct &&
	echo '{{ messages[0].content }}' >instruct/chat_template.jinja

examples() { sed -n '/^\.EX/,/^\.EE/p' "$top/docs/man/$1" | grep -v '^\.E' | sed 's/\\-/-/g; s/\\e/\\/g'; }
examples ptqtools.7 > script
ok 'the examples of ptqtools.7 run' bash -euo pipefail script
for t in model-import tokenize images-import sample-tokens hessian-accum gar-order dpq-run fbq-run eval-ppl plan-bits \
	questions-import eval-choice eval-compare eval-generate aifs-order tensor-info tensor-stats tensor-diff \
	exmy-sweep exmy-pack qep-correct model-export ln2rms hadamard-rotate smooth-scale \
	awq-scale rms-suppress msq-calib roofline tensor-join; do
	ok "$t.1 has examples" test -n "$(examples $t.1)"
	examples $t.1 > script
	ok "the examples of $t.1 run" bash -euo pipefail script
	"$t" --help > help; ok "$t --help" test -s help
	sed 's/^ *//' script > lines
	sed -n '/^Examples:/,$p' help | sed 1d > script
	if [ -s script ] && ! sed 's/^ *//' script |
		grep -Fxqvf lines; then ok "the examples of $t --help are those of $t.1" true
	else ok "the examples of $t --help run" bash -euo pipefail script; fi
	is "$t --version" "$("$t" -V)" "$t (ptqtools) $(cat "$top/VERSION")"
	ok "$t.1 has the options of the tool: make docs" \
		sh -c "PTQ_BIN=\$(dirname \$(command -v $t)) '$top/docs/man/options' $t | cmp - '$top/docs/man/$t.1'"
	no "$t refuses an unknown option" 2 'there is no option --nonsense' "$t" --nonsense
	ok "$t --help fits 80 columns, except a long default" \
		perl -CS -ne 's/ \[[^] ]{30,}]$//; $bad |= length > 81; END { exit $bad }' help
done
done_testing
