#!/bin/sh
# Runs the Go tests that mean nothing under the race detector, and skip themselves there (what the audio path
# allocates, what a session and a hostile answer take), and those that are only sampled there, because it makes
# them ten times as slow: random conversations, damaged data, fields of other types. Memory is measured with the
# garbage collector as it is (no compiling).
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
export GOTMPDIR="${GOTMPDIR:-${TMPDIR:-/tmp}}"
TMPDIR=$(testfolder)
export TMPDIR
go test -vet=off -ldflags=-s -run 'Allocates|StaysSmall|HostileAnswers|EverythingSaidIsAnswered|Random|StepIsPure|Damage$|FieldsOfOtherTypes' \
	./session ./transport/... ./internal/ws ./audio ./e2e ./orchestrator ./store
