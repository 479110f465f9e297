#!/bin/sh
# Checks what installs voicegw: the unit, the chart, the compose file, the first steps of
# docs/metrics.md and the image. The programs that read the files read them here, too: voicegw itself (VOICEGW, or one
# that is built), Prometheus, nginx, systemd. A check whose tools are missing says so.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
(cd deploy && go vet ./... && go test ./...)
for program in systemd-analyze prometheus promtool nginx; do
	command -v "$program" >/dev/null || echo "$program is not installed; the files for it are not checked"
done
./scripts/test-operations.sh
./scripts/test-image.sh
