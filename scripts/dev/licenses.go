package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const pageLock = "web/package-lock.json"

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([.-].*)?$`)

// signs identify licenses by their words, the first match wins. An unlisted license stops the build, because a person
// has to read it.
var signs = []struct {
	spdx  string
	words []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may not be used to endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms",
		"this list of conditions and the following disclaimer in the documentation"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice"}},
	{"MIT-0", []string{"mit no attribution"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}},
}

func spdxOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, s := range signs {
		all := true
		for _, words := range s.words {
			all = all && strings.Contains(text, words)
		}
		if all {
			return s.spdx
		}
	}
	return ""
}

func licenseOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if spdx := spdxOf(string(text)); spdx != "" {
			return spdx, nil
		}
	}
	return "", errors.New("its license is not one of those that scripts/dev/licenses.go knows: read it, and add its signs " +
		"or drop the module")
}

func licensed() (modules, packages []module, err error) {
	if modules, err = programModules(); err != nil {
		return nil, nil, err
	}
	var unknown []error
	for i, m := range modules {
		if modules[i].license, err = licenseOf(m.Dir); err != nil {
			unknown = append(unknown, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
	}
	if packages, err = pagePackages(pageLock); err != nil {
		return nil, nil, err
	}
	for _, p := range packages {
		if p.license == "" {
			unknown = append(unknown, fmt.Errorf("%s %s: %s names no license of it", p.Path, p.Version, pageLock))
		}
	}
	return modules, packages, errors.Join(unknown...)
}

func licenseTable(modules, packages []module) []byte {
	var b bytes.Buffer
	b.WriteString("# Third parties\n\nvoicegw includes this code of others.\n\n" +
		"## Go modules\n\n| module | version | license |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, m.license)
	}
	b.WriteString("\nGo's standard library and runtime: BSD-3-Clause.\n\n" +
		"## In the pages of the console and of load reports\n\n| package of npm | version | license |\n|---|---|---|\n")
	for _, p := range packages {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Path, p.Version, p.license)
	}
	return b.Bytes()
}

func licenses(args []string) error {
	if len(args) > 1 {
		return errors.New("usage: licenses [FILE]")
	}
	modules, packages, err := licensed()
	if err != nil || len(args) == 0 {
		return err
	}
	return os.WriteFile(args[0], licenseTable(modules, packages), 0o644)
}
