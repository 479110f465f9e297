#!/bin/sh
# Runs the Go tests that the race detector makes meaningless (allocations of the audio path, memory of sessions and
# hostile answers) or too slow (they run a sample there). norace_test.go checks that none is missing here. Uses the
# default garbage collector (no compiling), because memory is measured.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
files_in_memory
go test -vet=off -ldflags=-s -run 'Allocates|StaysSmall|HostileAnswers|ThousandLostClients|EverythingSaidIsAnswered|Random|StepIsPure|Damage$|FieldsOfOtherTypes|Pairs$' \
	./session ./gateway/realtime ./transport/gemini ./transport/openai ./transport/live ./internal/ws ./e2e ./orchestrator ./store ./config
