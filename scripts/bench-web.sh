#!/bin/sh
# Measures the page in Chromium and prints tables: time to sound and to silence, underruns with jitter, main thread
# and memory during speech. Keep the machine idle. BENCH_SECONDS (60) is the speech at each jitter, BENCH_MINUTES (2)
# the speech for the memory; with 15, growth after the tenth minute fails. More than BENCH_MAIN_MS (60) of main thread
# per second fails. BENCH_PROFILE=file writes a separate trace of ten seconds.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
. ./scripts/npm-install.sh
export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	echo "bench-web: $CHROMIUM not found; install Debian's package chromium, or set CHROMIUM." >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
./scripts/tools
go build -o "$work/voicegw" ./cmd/voicegw
cd web
npm_install
npm run --silent build -w client
VOICEGW="$work/voicegw" npx vitest run --root browser --config bench/vitest.config.ts "$@"
