# Sourced by scripts that need npm packages: npm_install installs those of the current folder if its lock file
# changed; in web, build_packages builds our own packages unless the caller did.
for tool in node npm; do
	if ! command -v "$tool" >/dev/null 2>&1; then
		echo "$0: $tool is not installed; this needs node 20 or newer with npm." >&2
		exit 1
	fi
done
npm_install() {
	npm_stamp=node_modules/.lock-sum
	npm_sum=$(cat package.json package-lock.json .npmrc | sha256sum)
	if [ ! -f "$npm_stamp" ] || [ "$(cat "$npm_stamp")" != "$npm_sum" ]; then
		npm ci --ignore-scripts --no-audit --no-fund
		printf '%s\n' "$npm_sum" >"$npm_stamp"
	fi
}
build_packages() {
	if [ "${WEB_PACKAGES:-}" != built ]; then
		npm run --silent build -w client
		npm run --silent build -w react
	fi
}
