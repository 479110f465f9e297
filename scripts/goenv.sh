# Sourced by scripts that compile: all compile in the same way, so that the cache holds
# everything once. A machine that has never built this project compiles for minutes otherwise.
# No debugger reads what scripts build; without its data the compiler takes an eighth less time.
export CGO_ENABLED=0 GOFLAGS="-trimpath -gcflags=all=-dwarf=false"

# compiling runs a command that compiles. The compiler takes a tenth less time, and a fifth more memory,
# where it collects its garbage half as often.
compiling() {
	GOGC=200 "$@"
}

# files_in_memory lets tests keep their files in memory, if that has room and can hold programs: tests make and
# remove hundreds of thousands of files, and those of the store take a quarter less time then. What the go command
# builds stays on the disk, because programs under the race detector are large. The folder has the same name each
# time: the go command keeps results of tests only for the TMPDIR that they ran with.
files_in_memory() {
	folder=/dev/shm/voicegw-$(id -u)
	room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $1 == "tmpfs" { print $4 }')
	if [ "${room:-0}" -lt $((2 << 20)) ] || ! { [ -O "$folder" ] || mkdir -m 700 "$folder"; } 2>/dev/null; then
		return 0
	fi
	# Tests that were killed leave their files.
	find "$folder" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
	program=$(mktemp "$folder/program-XXXXXX")
	printf '#!/bin/sh\n' >"$program"
	chmod +x "$program"
	if "$program" 2>/dev/null; then
		export GOTMPDIR="${GOTMPDIR:-${TMPDIR:-/tmp}}" TMPDIR="$folder"
	fi
	rm "$program"
}
