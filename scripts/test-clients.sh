#!/bin/sh
# Runs the providers' official npm clients, unchanged, against the simulator, OpenAI's Realtime clients also against a
# gateway with each provider behind it, and Chat Completions clients against a gateway. Needs node (20 or newer) and npm.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh

for tool in go node npm; do
	if ! command -v "$tool" >/dev/null 2>&1; then
		echo "test-clients: $tool is not installed. The official clients need node 20 or newer with npm, the simulator needs Go." >&2
		exit 1
	fi
done
if ! node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)'; then
	echo "test-clients: node $(node --version) is too old; the official clients need node 20 or newer." >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. ./scripts/program.sh

# A self-signed certificate, made by a program that comes with Go: one client speaks only TLS.
make_certificate=$(go env GOROOT)/src/crypto/tls/generate_cert.go
(cd "$work" && go run "$make_certificate" -ecdsa-curve P256 -host localhost,127.0.0.1 >/dev/null 2>certificate.log) || {
	cat "$work/certificate.log" >&2
	exit 1
}

# install installs the folder's packages if its lock file changed.
install() {
	stamp=node_modules/.lock-sum
	sum=$(cat package.json package-lock.json .npmrc | sha256sum)
	if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$sum" ]; then
		npm ci --ignore-scripts --no-audit --no-fund
		printf '%s\n' "$sum" >"$stamp"
	fi
}

# Node 20 has WebSocket only behind a flag.
flag=
if ! node -e 'process.exit(typeof WebSocket === "function" ? 0 : 1)'; then
	flag=--experimental-websocket
fi

# The clients must not use keys or addresses from the environment.
unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_ORG_ID OPENAI_PROJECT_ID OPENAI_ADMIN_KEY \
	GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GENAI_USE_VERTEXAI GOOGLE_GENAI_USE_ENTERPRISE \
	GOOGLE_GEMINI_BASE_URL GOOGLE_VERTEX_BASE_URL GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION
export OPENAI_AGENTS_DISABLE_TRACING=1
export VOICEGW_TEST_CERT="$work/cert.pem" VOICEGW_TEST_KEY="$work/key.pem"
export NODE_EXTRA_CA_CERTS="$work/cert.pem"
for clients in sim/clients gateway/clients; do
	(cd "$clients" && install && node $flag --test --test-reporter=spec --test-concurrency=3 ./*.test.mjs)
done
for through in openai gemini; do
	(cd sim/clients && VOICEGW_TEST_THROUGH=$through node $flag --test --test-reporter=spec --test-concurrency=2 \
		openai.test.mjs agents.test.mjs)
done
