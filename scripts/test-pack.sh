#!/bin/sh
# Tests the npm packages as users get them: packed, installed in an empty project, compiled
# against with strict settings, bundled, and checked for size; and the example page, with the
# packed package, against a gateway in Chromium, if that is installed.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
. ./scripts/npm-install.sh
root=$PWD
most=16384
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd web
npm_install
build_packages
for package in client react; do
	npm pack --silent -w $package --pack-destination "$work" >/dev/null
done
react=$(node -p 'require("react/package.json").version')
types=$(node -p 'require("@types/react/package.json").version')

cp -R client/test/packed "$work/app"
cp client/example/index.html "$work/app"
cd "$work/app"
npm install --silent --ignore-scripts --no-audit --no-fund --prefer-offline ../*.tgz "react@$react" "@types/react@$types"
for resolution in nodenext bundler; do
	module=$resolution
	[ "$resolution" = nodenext ] || module=esnext
	node "$root/web/node_modules/typescript/bin/tsc" -p . --module $module --moduleResolution $resolution
done
echo "test-pack: a strict program compiles against the packages"

# The worklets are not counted: they are loaded separately.
library=node_modules/@voicegw/client/dist
if ls $library/*.js | grep -v -e /index.js -e /chat.js; then
	echo "test-pack: the library has more files than are weighed here" >&2
	exit 1
fi
size=$(gzip -9 -c $library/index.js | wc -c)
echo "test-pack: the library has $size bytes after gzip, of $most"
if [ "$size" -ge $most ]; then
	exit 1
fi

# A bundler finds the worklets automatically and copies them.
echo 'import { connect } from "@voicegw/client"; void connect();' >main.js
node "$root/web/node_modules/vite/bin/vite.js" build --logLevel warn --outDir bundled --config "$root/web/client/test/packed/vite.config.js"
for worklet in capture playback; do
	if ! ls bundled/assets/$worklet-*.js >/dev/null 2>&1; then
		echo "test-pack: the bundle has no $worklet worklet" >&2
		exit 1
	fi
done
echo "test-pack: a bundler copies the worklets"

export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	echo "test-pack: SKIPPED the example in Chromium: $CHROMIUM is not there (Debian's package chromium, or set CHROMIUM)."
	exit 0
fi
cd "$root"
. ./scripts/program.sh
node web/client/test/example.mjs "$work/app" "$VOICEGW"
