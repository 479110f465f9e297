# Sourced by scripts that run the program: VOICEGW is the caller's program; if unset, it is built with its tools into
# $work.
if [ -z "${VOICEGW:-}" ]; then
	./scripts/tools
	compiling go build -o "$work/voicegw" ./cmd/voicegw
	VOICEGW=$work/voicegw
fi
export VOICEGW
