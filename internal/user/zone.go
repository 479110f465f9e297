package user

import (
	"fmt"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no zones of its own
)

// maxName exceeds every name in the IANA time zone database.
const maxName = 64

// LoadZone returns an IANA time zone. An empty name and the machine-dependent Local are errors.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" || len(name) > maxName {
		return nil, fmt.Errorf("zone: %.*q is not an IANA time zone; write one such as Europe/Berlin or UTC", maxName, name)
	}
	found, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone: %q is not a known IANA time zone; write one such as Europe/Berlin or UTC", name)
	}
	return found, nil
}

// ZoneHere returns this machine's IANA time zone, from TZ in environ or /etc/localtime; empty if unknown.
func ZoneHere(environ []string) string {
	name, set := "", false
	for _, variable := range environ {
		if value, is := strings.CutPrefix(variable, "TZ="); is {
			name, set = value, true
		}
	}
	if !set {
		target, err := os.Readlink("/etc/localtime")
		if err != nil {
			return ""
		}
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	name = strings.TrimPrefix(name, ":")
	if _, err := LoadZone(name); err != nil {
		return ""
	}
	return name
}

// ZoneOr returns the named zone, or other if the name is empty or unknown.
func ZoneOr(name string, other *time.Location) *time.Location {
	if found, err := LoadZone(name); err == nil {
		return found
	}
	return other
}
