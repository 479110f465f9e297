#!/bin/sh
# Checks the browser code: types, unit tests, that the committed build matches the sources,
# and all of it in real Chromium, if that is installed. Arguments go to the
# tests in Chromium: scripts/test-web.sh library/devices -t muted.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
. ./scripts/npm-install.sh
cd web
npm_install
build_packages
npm run --silent check
npm run --silent test

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm run --silent build -w console -- --outDir "$work/dist" --logLevel warn
if ! diff -r "$work/dist" dist >/dev/null; then
	echo "test-web: web/dist is not what the sources give; run make web and commit web/dist and web/dist.sum" >&2
	exit 1
fi

export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	echo "test-web: SKIPPED the tests in Chromium: $CHROMIUM is not there (Debian's package chromium, or set CHROMIUM)."
	exit 0
fi
cd ..
. ./scripts/program.sh
# The store that two gateways have in common.
go build -o "$work/nats-server" github.com/nats-io/nats-server/v2
export NATS_SERVER="$work/nats-server"
cd web
npm run --silent test:browser -- "$@"
