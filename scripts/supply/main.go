// Command supply reports what the program is made of: the licenses of its modules
// (THIRD_PARTY.md), its bill of materials (CycloneDX), and the part of the Go vulnerability
// database that concerns them. docs/dependencies.md says when to run each.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const usage = `usage:
  supply licenses [--check]         write THIRD_PARTY.md, or say what is out of date in it
  supply sbom BINARY VERSION FILE   write the bill of materials of a built program
  supply vulndb ZIP-OR-URL FOLDER   keep what concerns this project of a vulnerability database
  supply vulndb-date FOLDER         say how old that is
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("these words are not understood\n" + usage)

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "licenses":
		return writeLicenses(thirdParty)
	case len(args) == 2 && args[0] == "licenses" && args[1] == "--check":
		return checkLicenses(thirdParty)
	case len(args) == 4 && args[0] == "sbom":
		return writeSBOM(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "vulndb":
		return updateVulnDB(args[1], args[2], out)
	case len(args) == 2 && args[0] == "vulndb-date":
		return tellAge(args[1], out)
	}
	return errUsage
}
