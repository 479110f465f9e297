// Command dev holds the programs that developers of voicegw run, mostly through the Makefile and scripts:
//
//	go run ./scripts/dev count                    print the size of the code and its limits
//	go run ./scripts/dev licenses [FILE]          check the licenses of all modules, and list them in FILE
//	go run ./scripts/dev sbom BINARY VERSION FILE write the bill of materials of a built program
//	go run ./scripts/dev slowsched GOROOT FOLDER  write a Go scheduler that delays goroutines
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// run runs the program that the first argument names.
func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name a program: count, licenses, sbom or slowsched")
	}
	switch name, args := args[0], args[1:]; name {
	case "count":
		return count(os.Stdout)
	case "licenses":
		return licenses(args)
	case "sbom":
		return sbom(args)
	case "slowsched":
		return slowScheduler(args)
	default:
		return fmt.Errorf("unknown program %q: name count, licenses, sbom or slowsched", name)
	}
}
