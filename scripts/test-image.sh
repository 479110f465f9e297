#!/bin/sh
# Builds the container image in two clones of this commit, compares the digests, and runs it as uid 65532 without
# capabilities on a read-only root. Skips itself without buildah or bubblewrap.
set -eu
cd "$(dirname "$0")/.."
for program in buildah bwrap; do
	if ! command -v "$program" >/dev/null; then
		echo "$program is not installed; the container image is not tested (Debian's packages buildah and bubblewrap)"
		exit 0
	fi
done

dir=$(mktemp -d)
server=
container=
cleanup() {
	if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
	if [ -n "$container" ]; then buildah rm "$container" >/dev/null; fi
	buildah rmi voicegw-test:one voicegw-test:two >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap cleanup EXIT
fail() {
	echo "$1" >&2
	exit 1
}

for clone in one two; do
	git clone -q . "$dir/$clone"
	IMAGE="voicegw-test:$clone" "$dir/$clone/scripts/image" >"$dir/$clone.log" 2>&1 || fail "$(tail -n 20 "$dir/$clone.log")"
done
one=$(tail -n 1 "$dir/one.log" | cut -d ' ' -f 2)
two=$(tail -n 1 "$dir/two.log" | cut -d ' ' -f 2)
[ "$one" = "$two" ] || fail "the image of one commit has two digests: $one and $two"
echo "two clones built the same image: $one"

container=$(buildah from voicegw-test:one)
# A copy, because only root may read buildah's storage.
cp -a "$(buildah mount "$container")" "$dir/root"
mkdir "$dir/data"
chmod 0777 "$dir/data"
chmod 0755 "$dir"
user=
if [ "$(id -u)" = 0 ]; then user="setpriv --reuid 65532 --regid 65532 --clear-groups"; fi
# The image's environment, as a runtime sets it, with changes from the arguments.
inside() {
	# shellcheck disable=SC2086 # $user is several words
	$user bwrap --unshare-user --uid 65532 --gid 65532 --unshare-pid --unshare-ipc --cap-drop ALL --die-with-parent --clearenv \
		--setenv VOICEGW_DATA_DIR /data --setenv SSL_CERT_FILE /etc/ssl/certs/ca-certificates.crt --setenv HOME /data \
		--ro-bind "$dir/root" / --proc /proc --dev /dev --tmpfs /tmp --bind "$dir/data" /data --chdir / "$@"
}

status=0
inside --setenv VOICEGW_LISTEN 0.0.0.0:0 /voicegw serve >"$dir/open.log" 2>&1 || status=$?
[ "$status" = 2 ] || fail "without authentication it serves everybody (exit code $status): $(cat "$dir/open.log")"

inside --setenv VOICEGW_LISTEN 127.0.0.1:0 /voicegw serve --log-format json >"$dir/serve.log" 2>&1 &
server=$!
address=
while [ -z "$address" ]; do
	kill -0 "$server" 2>/dev/null || fail "it has ended: $(cat "$dir/serve.log")"
	address=$(sed -n 's/.*"msg":"serving","addr":"\([^"]*\)".*/\1/p' "$dir/serve.log")
	[ -n "$address" ] || sleep 0.2
done
inside /voicegw health --url "http://$address" || fail "health fails: $(cat "$dir/serve.log")"
pid=
for candidate in $(pgrep -f '^/voicegw serve --log-format json'); do
	if [ "$(readlink "/proc/$candidate/exe" 2>/dev/null)" = "$dir/root/voicegw" ] || [ "$(readlink "/proc/$candidate/exe" 2>/dev/null)" = /voicegw ]; then pid=$candidate; fi
done
[ -n "$pid" ] || fail "the program cannot be found among the processes"
grep -q '^CapEff:[[:space:]]*0000000000000000$' "/proc/$pid/status" || fail "it has capabilities: $(grep CapEff "/proc/$pid/status")"
if [ -n "$user" ]; then
	grep -q '^Uid:[[:space:]]*65532' "/proc/$pid/status" || fail "it is another user: $(grep Uid "/proc/$pid/status")"
fi
if inside /voicegw version 2>&1 | grep -q 'CGO_ENABLED 1'; then fail "the program is not static"; fi
kill "$pid"
wait "$server" || fail "it does not end well: $(cat "$dir/serve.log")"
server=
grep -q '"msg":"stopped"' "$dir/serve.log" || fail "it was not stopped by a signal: $(cat "$dir/serve.log")"
echo "the image runs as uid 65532 on a read-only root"
