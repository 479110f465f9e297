package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/transport"
)

// TestBlockedUser: a user blocked by name or address gets an error with the end of the block; the model is not
// contacted.
func TestBlockedUser(t *testing.T) {
	for name, tc := range map[string]struct{ start, user string }{
		"by name":    {`{"type":"session.start","input_rate":16000,"output_rate":24000,"client":{"id":"mallory"}}`, "mallory"},
		"by address": {startText, someone.String()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := time.Now().Add(time.Hour)
				var asked []string
				st := newStage(t, hearing, func(o *Options) {
					o.Blocked = func(who user.User) (time.Time, bool) {
						asked = append(asked, who.String())
						return until, who.String() == tc.user
					}
				})
				c := st.connect(tc.start)
				synctest.Wait()
				c.expect(t, "error blocked")
				c.ended(t, protocol.CloseBlocked)
				got := c.last(t, "error")
				if want := until.UTC().Format("2006-01-02T15:04:05.000Z"); got["until"] != want || got["retryable"] != false {
					t.Errorf("the client got %v, want until %s and no retry", got, want)
				}
				if len(asked) != 1 || asked[0] != tc.user {
					t.Errorf("asked about %q, want %q", asked, tc.user)
				}
				synctest.Wait()
				if n := st.m.Running(); n != 0 {
					t.Errorf("%d sessions run", n)
				}
			})
		})
	}
}

// TestOthersAreNotBlocked: a block applies to one user only, and an error without an end time has no such field.
func TestOthersAreNotBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) {
			o.Blocked = func(who user.User) (time.Time, bool) { return time.Now().Add(time.Hour), who == user.Must("mallory") }
		})
		c, model := st.started()
		synctest.Wait()
		c.expect(t, "session.started")
		model.FailRecv(&transport.Error{Kind: transport.KindRetry})
		synctest.Wait()
		if _, has := c.last(t, "error")["until"]; has {
			t.Error("an error without an end time has one")
		}
	})
}
