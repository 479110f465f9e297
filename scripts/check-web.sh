#!/bin/sh
# Checks the browser code without a browser: types, unit tests, and that the committed build is current. Leaves our
# npm packages built.
set -eu
cd "$(dirname "$0")/.."
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
	echo "check-web: web/dist is out of date; run make web and commit web/dist and web/dist.sum" >&2
	exit 1
fi
