#!/bin/sh
# Measures the page in real Chromium and prints tables: how soon an answer starts and stops
# sounding, underruns with jitter, main thread and memory while talking. Keep the machine
# idle meanwhile. BENCH_SECONDS (60) of speech at each jitter, BENCH_MINUTES (2) of talking
# for the memory: with 15 it fails where anything grows after the tenth. It fails where the main
# thread takes more than BENCH_MAIN_MS (60) of a second. BENCH_PROFILE=file writes a trace of
# ten seconds, which the measured minutes are without.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
. ./scripts/npm-install.sh
export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	echo "bench-web: $CHROMIUM is not there; install Debian's package chromium, or set CHROMIUM." >&2
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
