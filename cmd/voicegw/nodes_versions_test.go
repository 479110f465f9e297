package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"voicegw/protocol"
)

// The store's buckets with the owner of each session and the state from which another gateway continues.
const (
	sessionsBucket    = "voicegw_sessions"
	checkpointsBucket = "voicegw_checkpoints"
)

// TestNodesNewerRecords: records of a newer version of the program are neither misread nor overwritten, and cause no
// crash: a client that resumes gets an error that says whether a retry helps.
func TestNodesNewerRecords(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{})
	kept := s.open()
	inDirectory, inCheckpoint := s.begin(0, "gemini"), s.begin(0, "openai")
	inDirectory.noted(t, kept)
	inCheckpoint.noted(t, kept)
	s.gateways[0].kill()
	for _, newer := range []struct {
		bucket string
		of     left
	}{{sessionsBucket, inDirectory}, {checkpointsBucket, inCheckpoint}} {
		wrote := s.makeNewer(newer.bucket, newer.of.id)
		got, gone, leave := newer.of.comeBack(t, s.gateways[1].addr)
		if got.in || got.code < 1000 || got.failure.Code == "" && got.code != protocol.CloseMoving {
			t.Errorf("%s: a client that resumes gets %+v", newer.bucket, got)
		}
		leave() // if it is connected
		gone()
		if now := s.record(newer.bucket, newer.of.id); now != wrote {
			t.Errorf("%s: the newer record\n%s\nhas become\n%s", newer.bucket, wrote, now)
		}
	}
	if l := s.begin(1, "gemini"); l.id == "" {
		t.Error("no session begins any more")
	}
	s.close()
}

var nodesOld = flag.String("nodes.old", "", "a program of an older version, for the test of two versions")

// TestNodesOlderProgram: one of three gateways runs an older version of the program. Clients resume its sessions through
// the others, and the others' sessions through it. After it is killed, its clients continue or, if it has stored no
// checkpoint, are asked to start again; the others' sessions continue.
func TestNodesOlderProgram(t *testing.T) {
	t.Parallel()
	if *nodesOld == "" {
		t.Skip("no older program is given with -nodes.old")
	}
	s := startSite(t, siteOptions{crowd: true, old: *nodesOld})
	cr := startTalking(t, s, nil)
	for through := range s.gateways {
		s.balancer.only(through)
		cut := time.Now()
		for i := range s.gateways {
			s.balancer.cut(i)
		}
		cr.areBack(t, cut)
		if went := cr.goOn(t, time.Now(), 1); went != len(cr.talkers) {
			t.Fatalf("%d of %d continue through gateway %d:\n%s", went, len(cr.talkers), through+1, cr)
		}
	}
	s.balancer.only(-1)
	theirs := cr.of(s.own(0))
	killed := time.Now()
	s.gateways[0].kill()
	went := cr.goOn(t, killed, 2)
	if least := len(cr.talkers) - len(theirs); went < least {
		t.Errorf("%d of %d continue, and %d sessions ran on newer gateways:\n%s", went, len(cr.talkers), least, cr)
	}
	t.Logf("%d sessions ran on the older program, %d of all continue", len(theirs), went)
	for _, c := range theirs {
		if refused := strings.Contains(strings.Join(c.complaints(), "\n"), protocol.CodeResumeRefused); c.isOver() && !refused {
			t.Errorf("client %d of the older gateway did not continue, and was not asked to start again: %v", c.n, c.complaints())
		}
	}
	for _, c := range cr.talkers {
		if c.isOver() && !slices.Contains(theirs, c) {
			t.Errorf("client %d of a newer gateway did not continue: %v", c.n, c.complaints())
		}
	}
	cr.hang()
	s.close()
}

// record returns the stored record of a session in a bucket.
func (s *site) record(bucket, session string) (text string) {
	s.t.Helper()
	err := s.nats.connect(func(js nats.JetStreamContext) error {
		kv, err := js.KeyValue(bucket)
		if err != nil {
			return err
		}
		e, err := kv.Get(recordKey(session))
		if err == nil {
			text = string(e.Value())
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// makeNewer writes a session's record as a newer version of the program would, and returns it.
func (s *site) makeNewer(bucket, session string) (text string) {
	s.t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.record(bucket, session)), &fields); err != nil || fields["v"] == nil {
		s.t.Fatalf("a record without a version: %v, %s", err, fields)
	}
	fields["v"], fields["of_the_future"] = json.RawMessage("99"), json.RawMessage("true")
	data, err := json.Marshal(fields)
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.nats.connect(func(js nats.JetStreamContext) error {
		kv, err := js.KeyValue(bucket)
		if err == nil {
			_, err = kv.Put(recordKey(session), data)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// recordKey is the key of a session's records.
func recordKey(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:])
}
