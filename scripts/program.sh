# Sourced by scripts that run the program: VOICEGW is the caller's program; if it is not set,
# the program is built, with its tools, into the folder $work.
if [ -z "${VOICEGW:-}" ]; then
	./scripts/tools
	compiling go build -o "$work/voicegw" ./cmd/voicegw
	VOICEGW=$work/voicegw
fi
export VOICEGW
