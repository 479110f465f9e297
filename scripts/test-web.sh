#!/bin/sh
# Tests the browser code in Chromium, if installed, after the checks without a browser (unless WEB_PACKAGES=built).
# Arguments go to the tests in Chromium: scripts/test-web.sh library/devices -t muted.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
if [ "${WEB_PACKAGES:-}" != built ]; then
	./scripts/check-web.sh
fi

export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	echo "test-web: SKIPPED the tests in Chromium: $CHROMIUM not found (Debian's package chromium, or set CHROMIUM)."
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. ./scripts/program.sh
# The store shared by two gateways.
compiling go build -o "$work/nats-server" github.com/nats-io/nats-server/v2
export NATS_SERVER="$work/nats-server"
cd web
npm run --silent test:browser -- "$@"
