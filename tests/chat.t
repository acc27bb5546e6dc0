#!/bin/sh
# chat.t -- tokenize --chat: conversations as texts by chat templates, compared with jinja2; sources of templates
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1

if ! has_h5py; then
	skip 'tokenize --chat' 'no h5py'
	done_testing
fi
py model m

# --- templates: every construct ---
if py '__import__("jinja2").Template' 2>/dev/null; then
	is 'expressions, filters, methods and tests: the text of jinja2' "$(py expressions)" True
	ok 'statements and white space around tags: the text of jinja2' py statements
	for seed in 1 2; do ok "random white space around tags, $seed: the text of jinja2" py spaces $seed; done
	is 'what jinja2 refuses is refused, with the lines of conversation and template' "$(py raising)" True
else
	skip 'templates by jinja2' 'no jinja2'
fi
ok 'what is not supported is refused by name and line' py refused
ok 'limits, and what has no text of its own' py stopped

# --- conversations and ids ---
t="{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}<|x|>
{% endfor %}"
py model m "$t"
c='[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes </s>"}]'
printf '%s\n\n  \n{"messages": %s, "tools": [{"name": "f"}]}\n' "$c" "$c" >chats.jsonl
tokenize --chat --model m chats.jsonl -o chats.h5
text='<s>user: Hi<|x|>
assistant: Yes </s><|x|>
'
printf '%s\000%s' "$text" "$text" >texts
tokenize --special --null --model m texts -o texts.h5
ok 'ids are those of the texts, with special tokens, one sequence for each conversation' \
	sh -c 'for d in tokens bytes sequence; do h5diff chats.h5 texts.h5 /$d || exit 1; done'
is 'no BOS belongs before them' "$(py attr chats.h5 tokens add_bos) $(py attr chats.h5 tokens bos_id)" '0 256'
is 'the history has the options, and digests of the conversations and of the template' "$(py history chats.h5)" \
	"tokenize $(cat "$top/VERSION") --chat text-sha256:$(sha256sum <chats.jsonl | cut -d' ' -f1) \
template-sha256:$(sha256sum <m/chat_template.jinja | cut -d' ' -f1)"
{ printf '\357\273\277'; sed 's/$/\r/' chats.jsonl; } >marked.jsonl
tokenize --chat --model m marked.jsonl -o marked.h5
ok 'a byte order mark at the start, and CR at the ends of lines' h5diff marked.h5 chats.h5 /tokens
tokenize --chat --model m <chats.jsonl >stdout.h5
ok 'standard input and output' h5diff stdout.h5 chats.h5 /tokens
printf '%s' "$c" | tokenize --chat --model m -o one.h5
is 'the last newline may be missing' "$(py text_of one.h5)" "['<s>user: Hi<|x|>\\nassistant: Yes </s><|x|>\\n']"
tokenize --decode --model m chats.h5 -o decoded
printf '%s\n%s\n' "$text" "$text" >texts
ok 'they decode to the texts' cmp decoded texts

# --- where the template comes from ---
model-import -q m -o m.h5
tokenize --chat --model m.h5 chats.jsonl -o of-file.h5
ok 'the template of an imported model' h5diff of-file.h5 chats.h5 /tokens
model-import -q m | cat >m.stream
tokenize --chat --model m.stream chats.jsonl -o of-stream.h5
ok '... of a stream' h5diff of-stream.h5 chats.h5 /tokens
model-export -q -o back m.h5
tokenize --chat --model back chats.jsonl -o back.h5
ok '... and of what model-export writes' h5diff back.h5 chats.h5 /tokens
py named
for m in named named.h5; do
	[ $m = named ] || model-import -q named -o named.h5
	tokenize --chat --model $m chats.jsonl -o default.h5
	tokenize --chat --template short --model $m chats.jsonl -o short.h5
	is "a list of templates of $m" "$(py text_of default.h5) $(py text_of short.h5)" "['long', 'long'] ['s', 's']"
	no "... without one of this name ($m)" 1 \
		"$m: has no chat template 'none', expected --template with one of: default, short" \
		tokenize --chat --template none --model $m chats.jsonl -o no.h5
done
py put named chat_template.jinja 'file{{ bos_token }}'
tokenize --chat --model named chats.jsonl -o default.h5
tokenize --chat --template short --model named chats.jsonl -o short.h5
is 'chat_template.jinja comes before the list' "$(py text_of default.h5) $(py text_of short.h5)" \
	"['file<s>', 'file<s>'] ['s', 's']"
no 'its name, among those there are' 1 'one of: default, short' \
	tokenize --chat --template none --model named chats.jsonl -o no.h5
model-import -q named -o named.h5
model-export -q --to gguf -o named.gguf named.h5 2>/dev/null
model-import -q named.gguf -o again.h5 2>/dev/null
for m in named.gguf again.h5; do
	tokenize --chat --model $m chats.jsonl -o default.h5
	tokenize --chat --template short --model $m chats.jsonl -o short.h5
	is "templates and special tokens of $m" "$(py text_of default.h5) $(py text_of short.h5)" \
		"['file<s>', 'file<s>'] ['s', 's']"
done
py string
tokenize --chat --model string chats.jsonl -o string.h5
is 'a text in tokenizer_config.json; special tokens of special_tokens_map.json' "$(py text_of string.h5)" \
	"['<s>|</s>|U||', '<s>|</s>|U||']"
py model bare
no 'a model without a template' 1 'bare: has no chat template, expected a model with chat_template.jinja' \
	tokenize --chat --model bare chats.jsonl -o no.h5
damaged() {	# damaged TEMPLATES MESSAGE [OPTION]...: chat_template of tokenizer_config.json
	templates=$1 message=$2; shift 2
	py put bare tokenizer_config.json "{\"chat_template\": $templates}"
	no "a chat_template $templates" 1 "bare: tokenizer_config.json: chat_template$message" \
		tokenize --chat --model bare "$@" chats.jsonl -o no.h5
}
for o in 5 '{"default": "x"}' true; do damaged "$o" ' is neither a text nor a list'; done
for o in 5 '["x"]' '{"name": "default"}' '{"name": "default", "template": 5}' '{"template": "x"}' \
	'{"name": "default", "template": "a\u0000b"}' '{"name": "default\u0000", "template": "x"}'; do
	damaged "[{\"name\": \"x\", \"template\": \"x\"}, $o]" \
		': number 1 is not an object with the texts name and template'
done
damaged '"a\u0000b"' ' is not a text: it has a NUL'
damaged '[{"name": "x", "template": "1"}, {"name": "x", "template": "2"}]' \
	": two templates are called 'x', expected one" --template x
py put bare chat_template.jinja file
tokenize --chat --model bare chats.jsonl -o file.h5
is '... is not read with a chat_template.jinja' "$(py text_of file.h5)" "['file', 'file']"
py put m tokenizer_config.json '[1]'
no 'a damaged tokenizer_config.json' 1 'm: tokenizer_config.json: is not an object' \
	tokenize --chat --model m chats.jsonl -o no.h5

# --- the date ---
py model dated "{{ strftime_now('%d %b %Y') if strftime_now is defined else 'none' }}"
tokenize --chat --date 2024-07-26 --model dated chats.jsonl -o dated.h5
is 'a template that asks for the date' "$(py text_of dated.h5)" "['26 Jul 2024', '26 Jul 2024']"
is '... which is in the history' "$(py history dated.h5 | cut -d' ' -f3-5)" '--chat --date 2024-07-26'
no '... without --date' 1 'chats.jsonl:1: dated: chat template:1: the template asks for the date, give one by --date' \
	tokenize --chat --model dated chats.jsonl -o no.h5
for d in 2024-02-30 2023-02-29 2024-13-01 2024-00-10 24-01-01 2024-1-1 today '2024-01-01 '; do
	no "no date: $d" 2 "date: '$d' is not a date, expected YYYY-MM-DD" \
		tokenize --chat --date "$d" --model dated chats.jsonl -o no.h5
done

# --- bad conversations ---
py model m "$t"
bad() {	# bad LINE MESSAGE: as the second line
	printf '%s\n%s\n' "$c" "$1" >bad.jsonl
	no "refused: $1" 1 "tokenize: bad.jsonl:2: $2" tokenize --chat --model m bad.jsonl -o no.h5
}
bad '{"messages": [}' 'is not valid JSON'
bad '5' 'is not valid JSON: .*expected near'
bad '{"conversation": []}' "the member 'conversation' is not supported, expected messages and tools"
bad "{\"messages\": $c, \"chat_template_kwargs\": 1}" "the member 'chat_template_kwargs' is not supported"
bad "{\"tools\": []}" "has no member 'messages'"
bad '{"messages": 5}' 'the messages are not a list'
bad '[]' 'the conversation has no messages'
bad '["Hi"]' 'message 0 is not an object'
bad '[{"content": "Hi"}]' 'message 0 has no role'
bad '[{"role": 1, "content": "Hi"}]' 'message 0 has no role'
bad '[{"role": "user", "content": [{"type": "image"}]}]' \
	"message 0: part 0 of its content is of type 'image', expected texts only"
bad '[{"role": "user", "content": ["Hi"]}]' "message 0: part 0 of its content is of type 'none'"
bad "{\"messages\": $c, \"tools\": {}}" "'tools' is not a list"
bad "{\"messages\": $c, \"tools\": [1]}" "'tools': number 0 is not an object"
bad '[{"role": "user", "role": "x"}]' 'is not valid JSON: duplicate'
bad "$(printf '[{"role": "user", "content": "\377"}]')" 'is not valid JSON'
py model m "{% if messages[1].role != 'assistant' %}{{ raise_exception('Roles must alternate
here') }}{% endif %}x"
bad '[{"role": "user", "content": ""}, {"role": "user", "content": ""}]' \
	'm: chat template:1: raise_exception: Roles must alternate.here$'
py model m '{{ messages | tojson }}'
bad "$(py deep)" 'm: chat template:1: a value is nested in more than 200 levels'
py model m '{{ messages[0].content }}'
bad '[{"role": "user", "content": ""}]' 'the chat template makes an empty text of this conversation'
printf '\n \n' >blank
no 'no conversation' 1 'blank: holds no conversation, expected JSON, one per line' \
	tokenize --chat --model m blank -o no.h5
printf '[{"role": "user", "content": "a\\u0000b"}]' | tokenize --chat --model m -o nul.h5
is 'a NUL in a text' "$(py text_of nul.h5)" "['a\\x00b']"
printf 'a\377' >m/chat_template.jinja
no 'a template that is not UTF-8' 1 'm: chat template: is not valid UTF-8' \
	tokenize --chat --model m chats.jsonl -o no.h5
ok 'errors leave no file' sh -c '[ ! -e no.h5 ] && [ -z "$(find . -name ".ptq*")" ]'

# --- options ---
no '--chat with --model and --bytes' 2 '^tokenize: exactly one of --model and --bytes is expected$' \
	tokenize --chat --model m --bytes chats.jsonl -o no.h5
for o in --decode --null; do
	no "--chat with $o" 2 "^tokenize: --chat is given with $o, expected --model alone\$" \
		tokenize --chat --model m $o chats.jsonl -o no.h5
done
no '--chat without a model' 2 '--chat is given with --bytes, expected --model alone' \
	tokenize --chat --bytes chats.jsonl -o no.h5
warns '--special with --chat' 'without effect here: --special .--chat.' \
	tokenize --chat --special --model back chats.jsonl -o o.h5
warns '--template and --date without --chat' 'without effect here: --template, --date .no --chat.' \
	tokenize --template x --date 2024-01-01 --model back texts -o o.h5
done_testing
