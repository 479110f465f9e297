# Sourced by scripts that compile: all compile in the same way, so that the cache holds
# everything once. A machine that has never built this project compiles for minutes otherwise.
export CGO_ENABLED=0 GOFLAGS=-trimpath
