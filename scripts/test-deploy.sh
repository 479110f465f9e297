#!/bin/sh
# Checks what installs voicegw: the unit, the chart, the compose file, the first steps of
# docs/operations.md and the image. A check whose tools are missing says so.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
(cd deploy && go vet ./... && go test ./...)
for program in systemd-analyze; do
	command -v "$program" >/dev/null || echo "$program is not installed; the unit of systemd is not verified"
done
./scripts/test-operations.sh
./scripts/test-image.sh
