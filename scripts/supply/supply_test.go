package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLicensesAreToldApart(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Apache License\n   Version 2.0, January 2004", "Apache-2.0"},
		{"Permission is hereby granted, free of charge, to any person\nThe above copyright notice and this permission notice shall", "MIT"},
		{"MIT No Attribution\nPermission is hereby granted, free of charge, to any person", "MIT-0"},
		{"Redistribution and use in source and\nbinary forms, with or without\nNeither the name of X", "BSD-3-Clause"},
		{"Redistribution and use in source and binary forms. this list of conditions and the following disclaimer in the documentation", "BSD-2-Clause"},
		{"Permission to use, copy, modify, and distribute this software for any purpose", "ISC"},
		{"GNU GENERAL PUBLIC LICENSE Version 3", ""},
		{"", ""},
	} {
		if got := spdxOf(c.text); got != c.want {
			t.Errorf("%q is %q, not %q", c.text, got, c.want)
		}
	}
}

func TestAModuleWithAnUnknownLicenseIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("All rights reserved."), 0o600); err != nil {
		t.Fatal(err)
	}
	if spdx, err := licenseOf(dir); err == nil {
		t.Errorf("the license is taken for %s", spdx)
	}
}

func TestWhatIsOutOfDateIsNamed(t *testing.T) {
	has := licenseTable([]module{{Path: "example.com/old", Version: "v1.0.0", license: "MIT"}}, nil)
	wants := licenseTable([]module{{Path: "example.com/new", Version: "v2.0.0", license: "ISC"}}, nil)
	if err := compareLicenses("T.md", wants, wants); err != nil {
		t.Error(err)
	}
	err := compareLicenses("T.md", has, wants)
	if err == nil || !strings.Contains(err.Error(), "missing: | example.com/new") || !strings.Contains(err.Error(), "out of date: | example.com/old") {
		t.Error(err)
	}
}

func TestUnknownArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"sbom"}, {"licenses", "--wrong"}, {"vulndb"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
