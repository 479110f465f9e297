package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"voicegw/config"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// TestToolsCallNests: a tool that voicegw tools call runs may call others within the bounds, and each call and its
// answer are shown.
func TestToolsCallNests(t *testing.T) {
	caps, err := openCapabilities(t.Context(), config.Default(), t.TempDir(), store.Options{Memory: true}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer caps.close()
	sim, err := simulatorFor(t.Context(), config.Default(), quiet)
	if err == nil {
		defer sim.close()
		err = openImages(t.Context(), config.Default(), t.TempDir(), sim, caps, new(liveImages))
	}
	if err != nil {
		t.Fatal(err)
	}
	o := caps.registryOptions(false)
	o.Handlers = handlers()
	r, err := registry.Load(registrytest.Project(t), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		calling []string
		tool    string
		args    any
		want    registry.ErrorType // empty if it runs
		says    string
	}{
		"runs":                  {[]string{"other"}, "extract_contacts", map[string]string{"text": "ada@example.org"}, "", "other calls extract_contacts"},
		"itself":                {[]string{"extract_contacts"}, "extract_contacts", nil, registry.ErrorPermanent, ""},
		"too deep":              {[]string{"a", "b", "c"}, "extract_contacts", nil, registry.ErrorPermanent, ""},
		"no JSON":               {[]string{"other"}, "extract_contacts", make(chan int), registry.ErrorPermanent, "cannot be written as JSON"},
		"unknown":               {[]string{"other"}, "nothing", nil, registry.ErrorNotFound, "nothing answers"},
		"without what it needs": {[]string{"other"}, "extract_contacts", nil, registry.ErrorValidation, "extract_contacts answers"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			n := nobody{Process{Stderr: &said}, r.Snapshot(), registry.Session{ID: "tools-call", Mode: spec.ModeText, Now: time.Now()}, tc.calling}
			env := n.Call(t.Context(), tc.tool, tc.args)
			var got registry.ErrorType
			if env.Error != nil {
				got = env.Error.Type
			}
			if got != tc.want || env.OK != (tc.want == "") || tc.want == "" && !json.Valid(env.Data) || !strings.Contains(said.String(), tc.says) {
				t.Errorf("the answer is %s, and what was said %q", env.Encode(), said.String())
			}
		})
	}
}
