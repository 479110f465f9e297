#!/bin/sh
# Tests the npm packages as users get them: packed in a clean clone, checked by package linters, installed in an empty
# project, compiled with strict settings, imported on a server, and checked for size. Five applications (no build, a
# tag, Vite, React strict mode, Next.js app router) run against a gateway in Chromium, if installed.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
. ./scripts/npm-install.sh
root=$PWD
# Limits in bytes after gzip: the library, and the library with both worklets.
most=20480
most_whole=25088
most_element=3072
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd web
npm_install
tools=$root/web/node_modules

# Only files that git knows; prepack builds the rest.
mkdir "$work/clone"
(cd "$root" && git ls-files --cached --others --exclude-standard -- LICENSE web/client web/react web/console/package.json 'web/*.json' 'web/*.mjs' web/.npmrc) >"$work/known"
while read -r file; do
	if [ -f "$root/$file" ]; then # git still lists deleted files before a commit
		printf '%s\n' "$file"
	fi
done <"$work/known" | tar -c -C "$root" -T - -f - | tar -x -C "$work/clone" -f -
for package in client react; do
	(cd "$work/clone/web/$package" && npm_config_prefer_offline=true npm pack --silent --pack-destination "$work" >"$work/pack.log" 2>&1) || {
		cat "$work/pack.log" >&2
		exit 1
	}
done
for package in "$work"/*.tgz; do
	"$tools/.bin/publint" --strict "$package"
	"$tools/.bin/attw" --profile esm-only --format ascii --no-emoji "$package"
done
echo "test-pack: publint and attw found no problems"
react=$(node -p 'require("react/package.json").version')
types=$(node -p 'require("@types/react/package.json").version')

cp -R client/test/packed "$work/app"
cp ../examples/browser/index.html "$work/app"
cd "$work/app"
npm install --silent --ignore-scripts --no-audit --no-fund --prefer-offline ../*.tgz "react@$react" "react-dom@$react" "@types/react@$types"
node whole.mjs node_modules
for resolution in nodenext bundler; do
	module=$resolution
	[ "$resolution" = nodenext ] || module=esnext
	node "$tools/typescript/bin/tsc" -p . --module $module --moduleResolution $resolution
done
echo "test-pack: a strict program compiles against the packages"
node server.mjs

library=node_modules/@voicegw/client/dist
if ls $library/*.js $library/worklets/*.js | grep -v -e /index.js -e /chat.js -e /element.js -e /capture.js -e /playback.js; then
	echo "test-pack: the library has files that this script does not count" >&2
	exit 1
fi
weigh() { gzip -9 -c "$1" | wc -c; }
size=$(weigh $library/index.js)
whole=$((size + $(weigh $library/worklets/capture.js) + $(weigh $library/worklets/playback.js)))
echo "test-pack: the library has $size bytes after gzip, of $most; with its worklets $whole, of $most_whole"
element=$(weigh $library/element.js)
echo "test-pack: the element has $element bytes after gzip in addition to the library, of $most_element"
if [ "$element" -ge $most_element ]; then
	exit 1
fi
if [ "$size" -ge $most ] || [ "$whole" -ge $most_whole ]; then
	exit 1
fi

# The applications: web/apps and the example.
cd "$root/web/apps"
npm_install
cp -R . "$work/apps"
for app in plain tag; do
	[ -d "$work/apps/$app" ] || mkdir "$work/apps/$app"
	cp -R "$work/app/node_modules" "$work/apps/$app"
done
cp "$work/app/index.html" "$work/apps/plain"
cd "$work/apps"
for package in client react; do
	mkdir -p node_modules/@voicegw/$package
	tar -x -z -C node_modules/@voicegw/$package --strip-components 1 -f "$work"/voicegw-$package-*.tgz
done
node node_modules/typescript/bin/tsc -p .
for app in vite strict; do
	node node_modules/vite/bin/vite.js build --logLevel warn $app
	for worklet in capture playback; do
		if ! ls $app/dist/assets/$worklet-*.js >/dev/null 2>&1; then
			echo "test-pack: the bundle of $app has no $worklet worklet" >&2
			exit 1
		fi
	done
done
(cd next && NEXT_TELEMETRY_DISABLED=1 node ../node_modules/next/dist/bin/next build) >next.log 2>&1 || {
	cat next.log >&2
	exit 1
}
echo "test-pack: Vite, Vite with React and Next.js build with the packages, with the types of all libraries checked"

export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	echo "test-pack: SKIPPED the applications in Chromium: $CHROMIUM not found (Debian's package chromium, or set CHROMIUM)."
	exit 0
fi
cd "$root"
. ./scripts/program.sh
node web/apps/drive.mjs "$VOICEGW" "$work/apps/plain" "$work/apps/tag" "$work/apps/vite/dist" "$work/apps/strict/dist" "$work/apps/next"
