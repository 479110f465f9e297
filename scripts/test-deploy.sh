#!/bin/sh
# Checks the unit, the chart, the compose file, the first steps of docs/metrics.md and the image with the programs
# that read them: voicegw (VOICEGW, or a new build), Prometheus, nginx, systemd. A check without its tools says so.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
(cd deploy && go vet ./... && go test ./...)
for program in systemd-analyze prometheus promtool nginx; do
	command -v "$program" >/dev/null || echo "$program is not installed; its files are not checked"
done
./scripts/test-operations.sh
./scripts/test-image.sh
