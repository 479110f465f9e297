#!/bin/sh
# Compares voicegw with nginx and a direct connection, on the same work, in turns, each run with
# fresh processes:
#
#     scripts/bench/compare.sh               a quarter of an hour
#     scripts/bench/compare.sh --quick       one minute
#     scripts/bench/compare.sh --tls         TLS to the clients alone; six minutes
#     scripts/bench/compare.sh --large       with 5000 idle sessions; an hour
#     scripts/bench/compare.sh check [REV]   beside the program of a revision, by default the last
#                                            release's, which the file release names
#
# Linux only. nginx is Debian's; it is installed if it is missing and this runs as root.
# Without nginx the gateway is measured alone, with a message.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
. ./scripts/goenv.sh

what=compare
size=
revision=${2:-}
case "${1:-}" in
"") ;;
--quick) size=-quick ;;
--tls) size=-tls ;;
--large) size=-large ;;
check) what=check ;;
*)
	echo "compare.sh: $1 is not known; say --quick, --tls, --large or check, or nothing." >&2
	exit 2
	;;
esac

if [ "$(uname -s)" != Linux ]; then
	echo "compare.sh: this reads /proc and needs Linux." >&2
	exit 1
fi

# Two descriptors per session, and a few more.
ulimit -n "$(ulimit -H -n)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build builds the program of a source tree as it is shipped, except for the added probe:
# build TREE VERSION PROGRAM.
build() (
	cd "$1"
	./scripts/tools >/dev/null
	cat >"$3.overlay.json" <<-END
		{"Replace": {"$PWD/cmd/voicegw/probe.go": "$here/probe.go"}}
	END
	go build -tags probe -overlay "$3.overlay.json" -ldflags "-X main.version=$2" -o "$3" ./cmd/voicegw
)
version=$(git describe --tags --always --dirty 2>/dev/null || echo unknown)
build "$PWD" "$version" "$work/voicegw"
go build -o "$work/relaybench" ./scripts/bench
set -- -gateway "$work/voicegw"

if [ $what = check ]; then
	release=${revision:-$(cat "$here/release")}
	if ! git archive --prefix=release/ -o "$work/release.tar" "$release" 2>"$work/git.log"; then
		echo "compare.sh: $release is not in this clone, so that it cannot be measured here: $(cat "$work/git.log")" >&2
		exit 1
	fi
	tar -x -C "$work" -f "$work/release.tar"
	build "$work/release" "$release" "$work/voicegw-release"
	"$work/relaybench" check "$@" -release "$work/voicegw-release" -version "$release"
	exit
fi

find_nginx() { command -v nginx || command -v /usr/sbin/nginx; }
if ! find_nginx >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing nginx"
	# The bench starts its own nginx: the package's service must not run.
	RUNLEVEL=1 apt-get install -y -q nginx-light >"$work/apt.log" 2>&1 || cat "$work/apt.log" >&2
fi
if nginx=$(find_nginx); then
	set -- "$@" -nginx "$nginx"
else
	echo "compare.sh: there is no nginx: apt-get install nginx-light (as root). It is left out." >&2
fi
echo "$version, $(nproc) cores, $(uname -sr), $(go version | cut -d ' ' -f 3)${nginx:+, $("$nginx" -v 2>&1 | sed 's/.*: //')}"
"$work/relaybench" compare $size "$@"
