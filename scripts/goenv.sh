# Sourced by scripts that compile: all compile in the same way, so that the cache holds
# everything once. A machine that has never built this project compiles for minutes otherwise.
# No debugger reads what scripts build; without its data the compiler takes an eighth less time.
export CGO_ENABLED=0 GOFLAGS="-trimpath -gcflags=all=-dwarf=false"

# compiling runs a command that compiles. The compiler takes a tenth less time, and a fifth more memory,
# where it collects its garbage half as often.
compiling() {
	GOGC=200 "$@"
}

# testfolder prints where tests keep their files: in memory where that has room and can hold programs, because
# tests make and remove hundreds of thousands of files, which costs a disk an eighth of all their time. The folder
# has the same name each time: the go command keeps results of tests only for the TMPDIR that they ran with.
testfolder() {
	folder=/dev/shm/voicegw-$(id -u)
	room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $1 == "tmpfs" { print $4 }')
	if [ "${room:-0}" -gt $((2 << 20)) ] && { [ -O "$folder" ] || mkdir -m 700 "$folder"; } 2>/dev/null; then
		# Tests that were killed leave their files.
		find "$folder" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
		program=$(mktemp "$folder/program-XXXXXX")
		printf '#!/bin/sh\n' >"$program"
		chmod +x "$program"
		if "$program" 2>/dev/null; then
			rm "$program"
			echo "$folder"
			return
		fi
		rm "$program"
	fi
	echo "${TMPDIR:-/tmp}"
}
