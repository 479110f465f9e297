# Sourced by scripts that run the program: VOICEGW is the one of their caller, or it is
# built, with its tools, into the folder $work.
if [ -z "${VOICEGW:-}" ]; then
	./scripts/tools
	go build -o "$work/voicegw" ./cmd/voicegw
	VOICEGW=$work/voicegw
fi
export VOICEGW
