#!/bin/sh
# Follows docs/operations.md: runs the blocks marked "follow" in one shell, in an empty folder, with an empty
# environment and the built program (VOICEGW, or a new build), and checks the output that the page shows. Only the
# port differs.
set -eu
cd "$(dirname "$0")/.."
page=docs/operations.md
for program in curl openssl; do
	if ! command -v "$program" >/dev/null; then
		echo "$program is not installed; $page was not tested (install Debian's package of that name)"
		exit 0
	fi
done

dir=$(mktemp -d)
cleanup() {
	if [ -f "$dir/empty/voicegw/voicegw.pid" ]; then kill -9 "$(cat "$dir/empty/voicegw/voicegw.pid")" 2>/dev/null || true; fi
	rm -rf "$dir"
}
trap cleanup EXIT
fail() {
	echo "$page: $1" >&2
	exit 1
}

mkdir "$dir/bin" "$dir/empty" "$dir/steps"
if [ -n "${VOICEGW:-}" ]; then
	cp "$VOICEGW" "$dir/bin/voicegw"
else
	. ./scripts/goenv.sh
	./scripts/tools >/dev/null
	go build -o "$dir/bin/voicegw" ./cmd/voicegw
fi

# A free port: curl's exit code 7 is a refused connection.
port=$((20000 + $$ % 12000))
while
	status=0
	curl -s -o "$dir/port" "http://127.0.0.1:$port/" || status=$?
	[ "$status" != 7 ]
do port=$((20000 + (port + 1) % 12000)); done

# Step n is steps/n.sh; steps/n.prints has a pattern per line.
awk -v dir="$dir/steps" '
	/^<!-- follow -->$/ { armed = 1; next }
	armed && /^```sh$/ { armed = 0; inside = 1; n++; step = sprintf("%s/%02d", dir, n); next }
	armed { print "a mark without a block: line " NR > "/dev/stderr"; exit 1 }
	inside && /^```$/ { inside = 0; next }
	inside { print > (step ".sh") }
	/^<!-- prints: .* -->$/ { sub(/^<!-- prints: /, ""); sub(/ -->$/, ""); print > (step ".prints") }
' "$page"
steps=$(ls "$dir/steps" | grep -c '\.sh$')
[ "$steps" -ge 9 ] || fail "only $steps steps are marked"
for step in "$dir"/steps/*.sh; do
	printf 'echo "== %s"\n' "$(basename "$step" .sh)"
	sed "s/8443/$port/g" "$step"
done >"$dir/all.sh"

(cd "$dir/empty" && env -i PATH="$dir/bin:/usr/bin:/bin" HOME="$dir/empty" sh -eu "$dir/all.sh") >"$dir/out" 2>&1 || {
	cat "$dir/out" >&2
	cat "$dir/empty/voicegw/voicegw.log" >&2 || true
	fail "a step has failed"
}

for step in "$dir"/steps/*.sh; do
	name=$(basename "$step" .sh)
	awk -v name="== $name" '/^== [0-9][0-9]$/ { mine = $0 == name; next } mine' "$dir/out" >"$dir/printed"
	if [ -f "$dir/steps/$name.prints" ]; then
		while IFS= read -r pattern; do
			grep -Eq -e "$pattern" "$dir/printed" || {
				cat "$dir/printed" >&2
				fail "step $name has not printed $pattern"
			}
		done <"$dir/steps/$name.prints"
	fi
done
if kill -0 "$(cat "$dir/empty/voicegw/voicegw.pid")" 2>/dev/null; then fail "the gateway still runs"; fi
echo "$page: all $steps steps passed"
