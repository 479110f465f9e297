#!/bin/sh
# Holds voicegw against nginx, a relay in Node and a direct connection, on the same work,
# in turns, each run with fresh processes:
#
#     scripts/bench/compare.sh            a quarter of an hour
#     scripts/bench/compare.sh --quick    one minute
#     scripts/bench/compare.sh --large    with 5000 idle sessions; an hour
#     scripts/bench/compare.sh check      against baseline.json, the last release's figures
#     scripts/bench/compare.sh baseline   writes baseline.json
#
# Linux only. nginx is Debian's; it is installed if it is missing and this runs as root.
# A relay that is missing is left out, and said to be.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
. ./scripts/goenv.sh

what=compare
size=
case "${1:-}" in
"") ;;
--quick) size=-quick ;;
--large) size=-large ;;
check | baseline) what=$1 ;;
*)
	echo "compare.sh: $1 is not known; say --quick, --large, check or baseline, or nothing." >&2
	exit 2
	;;
esac

if [ "$(uname -s)" != Linux ]; then
	echo "compare.sh: this reads /proc and needs Linux." >&2
	exit 1
fi

# Two descriptors a session, and a few.
ulimit -n "$(ulimit -H -n)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program as it is shipped, but for the probe that is laid over it.
./scripts/tools >/dev/null
cat >"$work/overlay.json" <<END
{"Replace": {"$PWD/cmd/voicegw/probe.go": "$here/probe/probe.go"}}
END
version=$(git describe --tags --always --dirty 2>/dev/null || echo unknown)
go build -tags probe -overlay "$work/overlay.json" -ldflags "-X main.version=$version" -o "$work/voicegw" ./cmd/voicegw
go build -o "$work/relaybench" ./scripts/bench/relaybench
set -- -gateway "$work/voicegw"

if [ $what != compare ]; then
	"$work/relaybench" $what "$@" -file "$here/baseline.json" -version "$version"
	exit
fi

find_nginx() { command -v nginx || command -v /usr/sbin/nginx; }
if ! find_nginx >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing nginx"
	# The bench starts its own: the package's service must not.
	RUNLEVEL=1 apt-get install -y -q nginx-light >"$work/apt.log" 2>&1 || cat "$work/apt.log" >&2
fi
if nginx=$(find_nginx); then
	set -- "$@" -nginx "$nginx"
else
	echo "compare.sh: there is no nginx: apt-get install nginx-light (as root). It is left out." >&2
fi
if command -v node >/dev/null && command -v npm >/dev/null; then
	(
		cd "$here/noderelay"
		. "$here/../npm-install.sh"
		npm_install
	)
	set -- "$@" -node-relay "$here/noderelay/relay.mjs"
else
	echo "compare.sh: there is no node with npm (20 or newer). Its relay is left out." >&2
fi

echo "$version, $(nproc) cores, $(uname -sr), $(go version | cut -d ' ' -f 3)${nginx:+, $("$nginx" -v 2>&1 | sed 's/.*: //')}"
"$work/relaybench" compare $size "$@"
