#!/bin/sh
# templates.t -- tokenize --chat with the chat templates of real models: the texts of transformers, byte for byte
#
# TEMPLATES is a folder of such templates, NAME.jinja. They are not part of this project.
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers transformers jinja2 h5py
if ! [ -d "${TEMPLATES:-}" ]; then
	skip 'templates of real models' 'TEMPLATES is no folder of NAME.jinja'
	done_testing
fi
peer compare "$TEMPLATES" >rows
# NAME, conversations, how many transformers refuses, "equal" or the first difference
while IFS='	' read -r name all refused result; do
	case $result in
	*': m: chat template:'*' is not supported'*) skip "$name" "${result#*template:}" ;;
	*) is "$name: $all conversations, $refused of them refused" "$result" equal ;;
	esac
done <rows
ok 'there are templates' test -s rows
done_testing
