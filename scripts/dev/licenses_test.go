package main

import (
	"os"
	"path/filepath"
	"slices"
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

// TestModulesOfEverySystem: the program for Windows contains a module that the others lack, and lacks one of theirs.
func TestModulesOfEverySystem(t *testing.T) {
	t.Chdir("../..")
	modules, err := programModules()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"github.com/google/go-tpm", "github.com/prometheus/procfs"} {
		if !slices.ContainsFunc(modules, func(m module) bool { return m.Path == path }) {
			t.Errorf("%s is missing", path)
		}
	}
}
