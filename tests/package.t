#!/bin/sh
# package.t -- packages, without a build: an installation into an empty root, file by file
# The Debian package, the Containerfile, the pages and the Makefile must agree. make check-package does the rest.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD CC CFLAGS COVERAGE DESTDIR PREFIX SAN T V
package=$top/docs/package version=$(cat "$top/VERSION")

# A tree of links to the checkout, with the tools under test: nothing in it is built.
tools=$(cd "$top/bin" && printf '%s\n' *.c | sed 's/[.]c$//')
mkdir tree tree/bin
ln -s "$top/Makefile" "$top/VERSION" "$top/docs" "$top/pipelines" "$top/data" "$top/lib" "$top/tests" tree
for t in $tools; do ln -s "$top/bin/$t.c" "$(command -v "$t")" tree/bin; done

# --- an empty root with blanks in its path ---
root="$tmp/an empty root"
mkdir "$root"
ok 'make install' make -C tree -o all install DESTDIR="$root" PREFIX=/usr
# A line for each file: SOURCE, a tab, and its place.
{
	for t in $tools; do printf 'bin/%s\tbin/%s\n' "$t" "$t"; done
	(cd "$top" && printf '%s\n' docs/man/*.1) | sed 's,.*/\(.*\),&	share/man/man1/\1,'
	printf 'docs/man/ptqtools.7\tshare/man/man7/ptqtools.7\n'
	printf 'docs/package/completion.bash\tshare/bash-completion/completions/ptqtools\n'
	printf 'docs/ptqtools.py\tshare/ptqtools/ptqtools.py\n'
	printf 'docs/papers.md\tshare/ptqtools/docs/papers.md\n'
	(cd "$top" && find pipelines data -type f ! -name README.md ! -path 'data/*.py' ! -name '*.pyc' \
		! -path 'data/*.tsv') | sed 's,.*,&	share/ptqtools/&,'
} >map
cut -f 2 map | sort >expected
is 'every source is installed, and no other file' "$(cd "$root" && find . -type f | sed 's,^\./usr/,,' | sort |
	diff "$tmp/expected" -)" ''
while IFS='	' read -r from to; do cmp "tree/$from" "$root/usr/$to"; done <map >unlike 2>&1
is '... with its contents' "$(cat unlike)" ''
is '... pipelines and runners are programs' "$(cd "$root/usr/share/ptqtools" && find pipelines -type f -perm -1 | sort |
	xargs)" "$(cd "$top" && echo pipelines/*.sh pipelines/*.awk pipelines/each/* | tr ' ' '\n' | sort | xargs)"
is '... the links are completions of tools' "$(cd "$root/usr/share/bash-completion/completions" &&
	find "$root" -type l -exec sh -c 'echo "${1##*/} $(readlink "$1")"' sh {} \; | sort)" \
	"$(for t in $tools; do echo "$t ptqtools"; done)"
ok 'make uninstall' make -C tree uninstall DESTDIR="$root" PREFIX=/usr
is '... leaves only folders that packages share' "$(cd "$root" && find . | sort | xargs)" \
	"$(echo . ./usr ./usr/bin ./usr/share ./usr/share/bash-completion ./usr/share/bash-completion/completions \
		./usr/share/man ./usr/share/man/man1 ./usr/share/man/man7)"

# --- one version ---
is 'CITATION.cff has the version' "$(sed -n 's/^version: //p' "$top/CITATION.cff")" "$version"
is '... and so have the tools' "$(eval-ppl --version)" "eval-ppl (ptqtools) $version"
is '... and the man pages' "$(sed -n 's/^\.TH .*"ptqtools \(.*\)" .*/\1/p' "$top"/docs/man/*.[17] | sort -u)" "$version"
is '... and the first heading of docs/changes.md' "$(sed -n 's/^## \([^ ]*\).*/\1/p;T;q' "$top/docs/changes.md")" \
	"$version"

# --- the Debian package ---
"$package/changelog" "$top/docs/changes.md" >changelog
if command -v dpkg-parsechangelog >/dev/null; then
	is 'its changelog has the version' "$(dpkg-parsechangelog -l changelog -S Version 2>&1)" "$version"
else skip 'its changelog has the version' 'dpkg-parsechangelog is not installed'
fi
is '... on lines of 80 columns' "$(grep -v '^ -- ' changelog | awk 'length > 80')" ''
is '... with every item of docs/changes.md' "$(grep -c '^  \* ' changelog)" "$(grep -c '^- ' "$top/docs/changes.md")"
# The packages of any Debian machine that builds packages, and packages that only pipelines need, do not count.
is 'it is built with the packages of the Makefile' \
	"$(sed -n '/^Build-Depends:/,/^[^ B]/s/^ \([a-z0-9-]*\),*$/\1/p' "$package/debian/control" | sort | xargs)" \
	"$(sed -n 's/^BUILD_PACKAGES := //p' "$top/Makefile" | tr ' ' '\n' | grep -vx 'gcc\|libc6-dev\|gnuplot-nox' |
		sort | xargs)"
ok '... and depends on the OpenBLAS and on the gnuplot that the tools use' \
	grep -q '^Depends: libopenblas0-openmp, gnuplot-nox | ' "$package/debian/control"
is 'the Containerfile copies all that a build needs from the top folder' \
	"$(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$package/Containerfile" | tr ' ' '\n' | grep -v / | sort | xargs)" \
	'CITATION.cff LICENSE Makefile README.md VERSION bin data docs lib pipelines'

# --- promises of docs/stability.md ---
is 'the number of tools' "$(sed -n 's/.*| The \([0-9]*\) names\..*/\1/p' "$top/docs/stability.md")" \
	"$(echo "$tools" | wc -l)"
for v in $(grep -o '`[A-Z]*_[A-Z_]*`' "$top/docs/stability.md" | tr -d '`'); do
	grep -rqw "$v" "$top/lib" "$top/pipelines" || echo "$v is not in the code"
done >variables
is 'the variables are in the code' "$(cat variables)" ''
sample-tokens --tokens 32 --ctx 16 "$top/tests/ref/llama-gqa.h5" -o old.h5 &&
	sample-tokens --length 32 --ctx 16 "$top/tests/ref/llama-gqa.h5" -o new.h5
ok 'earlier names of options work' cmp old.h5 new.h5
done_testing
