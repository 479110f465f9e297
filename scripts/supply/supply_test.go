package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
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

// database is a zip in the layout of Go's.
func database(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// whole is a database of two entries, one of them for a module that is not ours.
func whole() map[string]string {
	return map[string]string{
		"index/db.json":      `{"modified":"2026-11-01T00:00:00Z"}`,
		"index/modules.json": `[{"path":"golang.org/x/net","vulns":[{"id":"GO-1","fixed":"0.36.0"}]},{"path":"example.com/foreign","vulns":[{"id":"GO-1"},{"id":"GO-2"}]}]`,
		"ID/GO-1.json": `{"schema_version":"1.3.1","id":"GO-1","database_specific":{"url":"https://pkg.go.dev/vuln/GO-1"},"details":"long prose","references":[{"url":"prose"}],"affected":[
			{"package":{"name":"golang.org/x/net","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"0.36.0"}]}],
			 "ecosystem_specific":{"imports":[{"path":"golang.org/x/net/proxy","symbols":["Dial"]}]}},
			{"package":{"name":"example.com/foreign","ecosystem":"Go"},"ranges":[]}]}`,
		"ID/GO-2.json": `{"id":"GO-2"}`,
	}
}

func TestTheDatabaseKeepsWhatConcernsUs(t *testing.T) {
	archive := database(t, whole())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	defer server.Close()
	folder := filepath.Join(t.TempDir(), "db")
	if err := os.MkdirAll(filepath.Join(folder, "ID"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := updateVulnDB(server.URL, folder, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "1 entries") || !strings.Contains(out.String(), "2026-11-01") {
		t.Error(out.String())
	}
	kept, err := os.ReadFile(filepath.Join(folder, "ID", "GO-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{`"0.36.0"`, `"Dial"`} {
		if !bytes.Contains(kept, []byte(has)) {
			t.Errorf("the entry lacks %s: %s", has, kept)
		}
	}
	for _, not := range []string{"prose", "foreign"} {
		if bytes.Contains(kept, []byte(not)) {
			t.Errorf("the entry still holds %q", not)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "ID", "GO-2.json")); err == nil {
		t.Error("an entry of a foreign module is kept")
	}
	var index []indexed
	text, err := os.ReadFile(filepath.Join(folder, "index", "modules.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &index); err != nil || len(index) != 1 || index[0].Path != "golang.org/x/net" || index[0].Vulns[0].Fixed != "0.36.0" {
		t.Errorf("the index is %s (%v)", text, err)
	}
	out.Reset()
	if err := tellAge(folder, &out); err != nil || !strings.Contains(out.String(), "1 known") {
		t.Error(out.String(), err)
	}
}

func TestABadDatabaseReplacesNothing(t *testing.T) {
	without := func(name string) map[string]string {
		files := whole()
		delete(files, name)
		return files
	}
	with := func(name, text string) map[string]string {
		files := whole()
		files[name] = text
		return files
	}
	for name, archive := range map[string][]byte{
		"no zip":          []byte("<html>"),
		"no date":         database(t, with("index/db.json", `{}`)),
		"no index":        database(t, without("index/modules.json")),
		"a missing entry": database(t, without("ID/GO-1.json")),
		"another's entry": database(t, with("ID/GO-1.json", `{"id":"../GO-9"}`)),
		"no address":      database(t, with("ID/GO-1.json", `{"id":"GO-1"}`)),
		"broken JSON":     database(t, with("ID/GO-1.json", `{"id":`)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, folder := filepath.Join(dir, "db.zip"), filepath.Join(dir, "db")
			old := filepath.Join(folder, "old")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string][]byte{file: archive, old: nil} {
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := updateVulnDB(file, folder, &strings.Builder{}); err == nil {
				t.Error("it is taken")
			}
			if _, err := os.Stat(old); err != nil {
				t.Error("the former database is gone:", err)
			}
		})
	}
}

func TestWordsThatAreNotUnderstood(t *testing.T) {
	for _, args := range [][]string{nil, {"sbom"}, {"licenses", "--wrong"}, {"vulndb", "a"}} {
		if err := run(args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func FuzzReadVulnDB(f *testing.F) {
	f.Add(database(f, whole()))
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		db, err := readVulnDB(archive, map[string]bool{"golang.org/x/net": true})
		if err == nil && db.modified.IsZero() {
			t.Error("a database without a date")
		}
		for _, e := range db.entries {
			if strings.ContainsAny(e.ID, `/\`) || e.ID == "" {
				t.Errorf("the entry %q names another file", e.ID)
			}
		}
	})
}
