#!/usr/bin/env bash
# package.sh -- make check-package: the commands of docs/package/Containerfile in two new Debian systems. The first
# builds the Debian package, the second installs it, runs a pipeline and removes it. Takes root, a network, and minutes.
#
# PTQ_ROOTS: a folder with room for the two systems, which are removed at the end.
# PTQ_MIRROR: where debootstrap fetches packages.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
[ "$(id -u)" = 0 ] || { echo 'make check-package: needs root' >&2; exit 1; }
roots=$(mktemp -d "${PTQ_ROOTS:-$tmp}/roots.XXXXXX") file=$top/docs/package/Containerfile
suite=$(sed -n 's/^FROM debian:\([a-z]*\).*/\1/p;T;q' "$file")
trap 'rm -rf "$tmp" "$roots"' EXIT

# within ROOT COMMAND: in a shell of the system; what the command starts and mounts ends with it
within() {
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" \
		/usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive sh -euc "$2"' sh "$1" "$2"
}
# stage N ROOT: the instructions of the Nth stage of the Containerfile, in the system
stage() {
	local word rest at=0 folder=/ from to sources
	while read -r word rest <&3; do
		[ "$word" != FROM ] || at=$((at + 1))
		[ $at = "$1" ] || continue
		case $word in
		WORKDIR) folder=$rest && mkdir -p "$2$folder" ;;
		RUN) ok "stage $1: ${rest%% && *} ..." within "$2" "cd $folder && $rest" ;;
		COPY)
			from=$top
			[[ $rest != --from=build* ]] || { from=$roots/build rest=${rest#* }; }
			read -ra sources <<<"$rest"
			to=${sources[-1]}
			[[ $to = /* ]] || to=$folder/$to
			unset 'sources[-1]'
			mkdir -p "$(dirname "$2$to")"
			ok "stage $1: COPY $rest" cp -R "${sources[@]/#/$from/}" "$2$to"
			;;
		FROM | CMD | '' | '#'*) ;;
		*) ok "an instruction that this test can run: $word" false ;;
		esac
	done 3<"$file"
}

ok "debootstrap $suite" debootstrap --variant=minbase "$suite" "$roots/base" ${PTQ_MIRROR:+"$PTQ_MIRROR"}
cp -L /etc/resolv.conf "$roots/base/etc"
cp -a "$roots/base" "$roots/build" && mv "$roots/base" "$roots/run"
stage 1 "$roots/build"
deb=("$roots"/build/src/build/deb/*.deb)
[ -f "${deb[0]}" ] || done_testing
ok 'lintian: no error, no warning' lintian --fail-on error,warning --allow-root "${deb[0]}"
cat ok.out
dpkg-deb -x "${deb[0]}" unpacked
is 'links of the installed pages' "$(py dead_links unpacked/usr/share/doc/ptqtools)" ''

# Files of the system before, except those that any installation writes.
everything() {
	(cd "$roots/run" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./var/cache -o -path ./var/log -o \
		-path ./var/lib/apt -o -path './var/lib/dpkg/*-old' -o -path ./work -o \
		-path ./home \) -prune -o -print | sort)
}
within "$roots/run" "useradd -m -d '/home/a user' user"
everything >before
stage 2 "$roots/run"
[ -e "$roots/run/usr/bin/dpq-run" ] || done_testing
is 'every tool' "$(cd "$roots/run/usr/bin" && for c in "$top"/bin/*.c; do ls "$(basename "$c" .c)"; done 2>&1)" \
	"$(cd "$top/bin" && printf '%s\n' *.c | sed 's/\.c$//')"
is '... of this version' "$(within "$roots/run" 'dpq-run --version')" "dpq-run (ptqtools) $(cat "$top/VERSION")"
ok 'a user runs a pipeline, at home' within "$roots/run" "su user -c 'cd \"\$HOME\" && OMP_WAIT_POLICY=passive \
	/usr/share/ptqtools/pipelines/dpq-table4.sh >table'"
cp "$roots/run/home/a user/table" table 2>/dev/null
is '... whose table has the rows and heads of docs/results' "$(awk '{ print $1, $2 }' table)" \
	"$(awk '{ print $1, $2 }' "$top/docs/results/dpq-table4-prose.tsv")"
is '... and group-aware reordering between the two others' \
	"$(awk '$1 == "W4A16" { print $4, $2 }' table | sort -g | cut -d ' ' -f 2 | xargs)" 'full gar none'
cat table
ls "$roots/run/home/a user/results/dpq"/*
ok 'an OpenBLAS of POSIX threads is installed too' within "$roots/run" \
	'apt-get update && apt-get install -y --no-install-recommends libopenblas0-pthread'
ok '... the same numbers, apart from the seconds in the last column' within "$roots/run" "
	cd '/home/a user/results/dpq/'*
	gar-order -q --order gar --group 128 hessian.h5 -o /tmp/order.h5 && cmp /tmp/order.h5 gar.h5
	dpq-run -q --storage uint4 --group 128 --compute none --order gar.h5 --hessian hessian.h5 \
		--report /tmp/report model.h5 >/dev/null
	for f in /tmp/report W4A16-gar.report; do sed 's,[^	]*$,,' \$f >/tmp/numbers-\$(basename \$f); done
	cmp /tmp/numbers-report /tmp/numbers-W4A16-gar.report"
ok '... it is removed' within "$roots/run" 'apt-get purge -y libopenblas0-pthread'
ok 'purge, and what it needed' within "$roots/run" 'apt-get purge -y --autoremove ptqtools'
everything >after
is '... nothing is left' "$(diff before after)" ''
done_testing
