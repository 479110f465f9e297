// Command supply writes the licenses of the program's modules (THIRD_PARTY.md) and its bill of materials (CycloneDX).
package main

import (
	"errors"
	"fmt"
	"os"
)

const usage = `usage:
  supply licenses [--check]         write THIRD_PARTY.md, or list the lines that are out of date
  supply sbom BINARY VERSION FILE   write the bill of materials of a built program
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("unknown arguments\n" + usage)

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "licenses":
		return writeLicenses(thirdParty)
	case len(args) == 2 && args[0] == "licenses" && args[1] == "--check":
		return checkLicenses(thirdParty)
	case len(args) == 4 && args[0] == "sbom":
		return writeSBOM(args[1], args[2], args[3])
	}
	return errUsage
}
