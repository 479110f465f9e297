package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"voicegw/internal/server"
	"voicegw/sim"
	"voicegw/sim/scenario"
)

// TestSimFlags: the simulator's options for the flags about connections and faults, and the refused flags.
func TestSimFlags(t *testing.T) {
	zero, some := time.Duration(0), 3*time.Second
	for name, tc := range map[string]struct {
		flags simRunFlags
		want  sim.Options
	}{
		"nothing":                    {simRunFlags{}, sim.Options{}},
		"a life":                     {simRunFlags{ConnectionLife: 20 * time.Second, GoAwayAfter: -time.Second}, sim.Options{ConnectionLife: 20 * time.Second, GoAwayAfter: -time.Second}},
		"an announcement":            {simRunFlags{GoAwayAfter: time.Second, GoAwayLeft: &some}, sim.Options{GoAwayAfter: time.Second, GoAwayLeft: some}},
		"an announcement of no time": {simRunFlags{GoAwayLeft: &zero}, sim.Options{GoAwayLeft: -1}},
	} {
		var got sim.Options
		err := tc.flags.misbehave(&got)
		if err != nil || got.ConnectionLife != tc.want.ConnectionLife || got.GoAwayAfter != tc.want.GoAwayAfter || got.GoAwayLeft != tc.want.GoAwayLeft || got.Faults != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	var got sim.Options
	if err := (simRunFlags{Fault: []string{"deaf", "at: turn, n: 2, do: goaway, for: 30s"}}).misbehave(&got); err != nil {
		t.Fatal(err)
	}
	in := got.Faults.NewInjector(1, scenario.Connection{N: 1})
	if at := in.At(scenario.Point{At: scenario.AtSetup}); len(at) != 1 || at[0].Kind != scenario.Deaf {
		t.Errorf("at the setup: %+v", at)
	}
	if at := in.At(scenario.Point{At: scenario.AtTurn, N: 2, Turn: 2}); len(at) != 1 || at[0].Kind != scenario.GoAway || at[0].For != 30*time.Second {
		t.Errorf("at the second turn: %+v", at)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--fault", "deef"}, `do cannot be "deef" (did you mean "deaf"?)`},
		{[]string{"--fault", "at: connect, do: amnesia"}, "amnesia has no meaning at connect"},
		{[]string{"--connection-life", "25h"}, "--connection-life: must be from 0s to 24h, or -1s, not 25h0m0s."},
		{[]string{"--go-away-after=-5s"}, "--go-away-after: must be from 0s to 24h, or -1s, not -5s."},
		{[]string{"--go-away-left=-1s"}, "--go-away-left: must be from 0s to 24h, not -1s."},
	} {
		var out, complaints bytes.Buffer
		p := Process{Args: append([]string{"sim", "--listen", "127.0.0.1:0"}, tc.args...), Host: server.Host{Stdout: &out, Stderr: &complaints}}
		if code := Run(context.Background(), p); code != exitUsage || !strings.Contains(complaints.String(), tc.want) {
			t.Errorf("%v: exit %d, %s", tc.args, code, complaints.String())
		}
	}
}
