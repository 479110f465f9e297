package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The vulnerability database is Go's own, https://vuln.go.dev/vulndb.zip, in the layout of
// https://go.dev/doc/security/vuln/database (read 2026-11-23): index/db.json,
// index/modules.json and ID/<id>.json. The kept part concerns the modules that this project
// requires, and Go itself, without the prose: what govulncheck needs, in a size that can
// be committed.
const (
	maxDatabase = 256 << 20 // bytes of the zip, which had about 6 MB in 2026
	maxEntry    = 4 << 20   // bytes of one file in it
	fetchTime   = 2 * time.Minute
	staleAfter  = 30 * 24 * time.Hour
)

// entry is an OSV entry (https://ossf.github.io/osv-schema/): the fields that are examined.
type entry struct {
	ID       string            `json:"id"`
	Modified time.Time         `json:"modified"`
	Aliases  []string          `json:"aliases,omitempty"`
	Affected []json.RawMessage `json:"affected"`
	Specific json.RawMessage   `json:"database_specific"`

	kept map[string]json.RawMessage // all fields that are kept, with the modules of this project alone
}

// prose are the fields of an entry that only people read. details is required, and emptied.
var prose = []string{"references", "credits"}

// indexed is a module of index/modules.json, with its entries.
type indexed struct {
	Path  string `json:"path"`
	Vulns []struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Fixed    string    `json:"fixed,omitempty"`
	} `json:"vulns"`
}

// kept is the part of a database that concerns this project.
type kept struct {
	modified time.Time
	index    []indexed
	entries  []entry // sorted by id
}

// updateVulnDB writes to a folder the part of the database that concerns this project. The
// database is a zip, a file or a URL. The folder is replaced only when the new one is complete.
func updateVulnDB(source, folder string, out io.Writer) error {
	archive, err := fetch(source)
	if err != nil {
		return err
	}
	names, err := requiredModules()
	if err != nil {
		return err
	}
	db, err := readVulnDB(archive, names)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	fresh := folder + ".new"
	if err := errors.Join(os.RemoveAll(fresh), writeVulnDB(fresh, db)); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.Rename(fresh, folder)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %d entries of %d modules, database of %s\n", folder, len(db.entries), len(names), db.modified.Format(time.DateOnly))
	return err
}

// fetch reads a file or a URL.
func fetch(source string) ([]byte, error) {
	if !strings.Contains(source, "://") {
		return os.ReadFile(source)
	}
	client := http.Client{Timeout: fetchTime}
	resp, err := client.Get(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", source, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDatabase+1))
	if err == nil && len(data) > maxDatabase {
		err = fmt.Errorf("%s: more than %d bytes", source, maxDatabase)
	}
	return data, err
}

// requiredModules returns the paths of all modules that go.mod requires, and the two names
// under which the database lists Go.
func requiredModules() (map[string]bool, error) {
	text, err := goList("-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{"stdlib": true, "toolchain": true}
	for _, name := range strings.Fields(string(text)) {
		names[name] = true
	}
	return names, nil
}

// readVulnDB returns the part of the database in a zip that concerns these modules.
func readVulnDB(archive []byte, modules map[string]bool) (db kept, err error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return db, err
	}
	var date struct {
		Modified time.Time `json:"modified"`
	}
	if err := errors.Join(readJSON(files, "index/db.json", &date), readJSON(files, "index/modules.json", &db.index)); err != nil {
		return db, err
	}
	if db.modified = date.Modified; db.modified.IsZero() {
		return db, errors.New("index/db.json: the field modified is missing")
	}
	db.index = slices.DeleteFunc(db.index, func(m indexed) bool { return !modules[m.Path] })
	wanted := make(map[string]bool)
	for _, m := range db.index {
		for _, v := range m.Vulns {
			wanted[v.ID] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		e, err := readEntry(files, id, modules)
		if err != nil {
			return db, err
		}
		db.entries = append(db.entries, e)
	}
	return db, nil
}

// readEntry reads an entry, and drops what it says of other modules.
func readEntry(files *zip.Reader, id string, modules map[string]bool) (e entry, err error) {
	name := "ID/" + id + ".json"
	if err := errors.Join(readJSON(files, name, &e), readJSON(files, name, &e.kept)); err != nil {
		return e, err
	}
	switch {
	case e.ID != id || !filepath.IsLocal(id) || strings.ContainsAny(id, `/\`):
		return e, fmt.Errorf("%s: it is the entry %q", name, e.ID)
	case len(e.Specific) == 0: // govulncheck crashes without it
		return e, fmt.Errorf("%s: the field database_specific is missing", name)
	}
	e.Affected = slices.DeleteFunc(e.Affected, func(raw json.RawMessage) bool {
		var affected struct{ Package struct{ Name string } }
		err = errors.Join(err, json.Unmarshal(raw, &affected))
		return !modules[affected.Package.Name]
	})
	if err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	for _, field := range prose {
		delete(e.kept, field)
	}
	e.kept["details"] = json.RawMessage(`""`)
	e.kept["affected"], err = json.Marshal(e.Affected)
	return e, err
}

// readJSON decodes one file of a zip.
func readJSON(files *zip.Reader, name string, v any) error {
	f, err := files.Open(name)
	if err != nil {
		return fmt.Errorf("it is not a vulnerability database: %w", err)
	}
	defer func() { _ = f.Close() }()
	limit := int64(maxEntry)
	if strings.HasPrefix(name, "index/") {
		limit = maxDatabase
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeVulnDB writes a database to a folder.
func writeVulnDB(folder string, db kept) error {
	type vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Aliases  []string  `json:"aliases,omitempty"`
	}
	vulns := make([]vuln, 0, len(db.entries))
	for _, e := range db.entries {
		if err := writeJSON(filepath.Join(folder, "ID", e.ID+".json"), e.kept); err != nil {
			return err
		}
		vulns = append(vulns, vuln{e.ID, e.Modified, e.Aliases})
	}
	return errors.Join(
		writeJSON(filepath.Join(folder, "index", "db.json"), map[string]time.Time{"modified": db.modified}),
		writeJSON(filepath.Join(folder, "index", "modules.json"), db.index),
		writeJSON(filepath.Join(folder, "index", "vulns.json"), vulns))
}

func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// tellAge prints the age of the database in a folder, and warns of an old one. Its age is not
// an error: if nothing can be fetched, the known entries are still worth comparing with.
func tellAge(folder string, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(folder, "index", "db.json"))
	if err != nil {
		return err
	}
	var db struct {
		Modified time.Time `json:"modified"`
	}
	if err := json.Unmarshal(text, &db); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	entries, err := os.ReadDir(filepath.Join(folder, "ID"))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%d known vulnerabilities, database of %s\n", len(entries), db.Modified.Format(time.DateOnly)); err != nil {
		return err
	}
	if time.Since(db.Modified) > staleAfter {
		_, err = fmt.Fprintln(out, "WARNING: it is older than 30 days; where vuln.go.dev can be reached, make vulndb fetches the newest")
	}
	return err
}
