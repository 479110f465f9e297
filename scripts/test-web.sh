#!/bin/sh
# Checks the page: types, and the unit tests of its pure parts under node.
# Needs node and npm; building and serving the page needs neither.
set -eu
cd "$(dirname "$0")/../web"

# npm ci only when the lock file has changed since the last time.
stamp=node_modules/.lock-sum
sum=$(cat package.json package-lock.json .npmrc | sha256sum)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$sum" ]; then
	npm ci --ignore-scripts --no-audit --no-fund
	printf '%s\n' "$sum" >"$stamp"
fi

./node_modules/.bin/tsc -p .
./node_modules/.bin/tsc -p test

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
(cd .. && go run ./scripts/web -tests "$out")
node --test "$out"/*.mjs
