#!/bin/sh
# Runs the Go tests that are skipped under the race detector, because what they measure means nothing there (what
# the audio path allocates, what sessions and hostile answers take), and those that run only a sample of their
# cases there, because it makes each up to ten times slower. norace_test.go finds what is missing here. Memory is
# measured with the garbage collector as it is (no compiling).
set -eu
cd "$(dirname "$0")/.."
. ./scripts/goenv.sh
files_in_memory
go test -vet=off -ldflags=-s -run 'Allocates|StaysSmall|HostileAnswers|AThousandAway|EverythingSaidIsAnswered|Random|StepIsPure|Damage$|FieldsOfOtherTypes|Pairs$' \
	./session ./transport/gemini ./transport/openai ./internal/ws ./e2e ./orchestrator ./store ./config
