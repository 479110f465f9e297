package gateway

import (
	"cmp"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/auth"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// TurnLimits limits the messages of text conversations. Zero fields mean their defaults.
type TurnLimits struct {
	// AtOnce is the maximum being answered. Zero means setting.Turns.
	AtOnce int
	// PerAddress is the maximum from one address. Zero means setting.TurnsPerAddress.
	PerAddress int
	// PerUser is the maximum from one user. Zero means setting.TurnsPerUser.
	PerUser int
	// NewPerSecond is the maximum that one address, and one user, may start per second. Zero means
	// setting.NewTurnsPerSecond.
	NewPerSecond int
	// ExemptLoopback exempts this machine's addresses from the limits of one address.
	ExemptLoopback bool
}

func (l TurnLimits) withDefaults() TurnLimits {
	l.AtOnce = cmp.Or(l.AtOnce, setting.Turns)
	l.PerAddress = cmp.Or(l.PerAddress, setting.TurnsPerAddress)
	l.PerUser = cmp.Or(l.PerUser, setting.TurnsPerUser)
	l.NewPerSecond = cmp.Or(l.NewPerSecond, setting.NewTurnsPerSecond)
	return l
}

// turns counts the messages being answered.
type turns struct {
	all            *quota.Quota[struct{}] // all together, under one key
	byAddr         *quota.Quota[string]
	byUser         *quota.Quota[string]
	exemptLoopback atomic.Bool
}

func newTurns(l TurnLimits) *turns {
	t := &turns{
		all: quota.New[struct{}](quota.Options{}), byAddr: quota.New[string](quota.Options{}), byUser: quota.New[string](quota.Options{}),
	}
	t.limit(l)
	return t
}

// limit changes the limits. Messages above them continue.
func (t *turns) limit(l TurnLimits) {
	t.all.Limit(quota.Options{AtOnce: l.AtOnce})
	t.byAddr.Limit(quota.Options{AtOnce: l.PerAddress, PerSecond: l.NewPerSecond})
	t.byUser.Limit(quota.Options{AtOnce: l.PerUser, PerSecond: l.NewPerSecond})
	t.exemptLoopback.Store(l.ExemptLoopback)
}

// manyBehind reports whether many users may share a request's address: that of a trusted server, or of this machine
// if exempt.
func (s *Server) manyBehind(r *http.Request, addr netip.Addr) bool {
	return isServer(auth.From(r.Context())) || s.turns.exemptLoopback.Load() && addr.IsLoopback()
}

// enterChat admits a turn, unless the user is blocked or over budget, the address or user has its maximum, or the
// gateway is full. If ok, leave must be called once.
func (s *Server) enterChat(w http.ResponseWriter, r *http.Request, who user.User, shape errorShape) (leave func(), ok bool) {
	if s.shutOut(w, who, shape, "You are temporarily blocked. Come back later.") {
		return nil, false
	}
	if s.spent(w, r, who, shape) {
		return nil, false
	}
	if s.opts.Sessions.Draining() {
		refuseDraining(w, shape)
		return nil, false
	}
	addr := s.clientAddr(r)
	var shares []share
	if !s.manyBehind(r, addr) {
		shares = append(shares, share{s.turns.byAddr, quota.AddressKey(addr).String(), "address",
			"Your address sends messages too fast; wait a moment.",
			"Too many messages from your address are being answered; wait until one is."})
	}
	// Anonymous users are counted by address, which was just checked.
	if !who.Anonymous() {
		shares = append(shares, share{s.turns.byUser, who.String(), "user",
			"This user sends messages too fast; wait a moment.",
			"Too many messages of this user are being answered; wait until one is."})
	}
	taken := 0
	back := func() {
		for _, had := range shares[:taken] {
			had.of.Give(had.key)
		}
	}
	for _, want := range shares {
		if wait, reason, message := want.enter(); reason != "" {
			back()
			s.seldom.Info("message refused", reason, "addr", addr.String())
			retryAfter(w, max(wait, time.Second))
			refuse(w, shape, http.StatusTooManyRequests, "limit", message)
			return nil, false
		}
		taken++
	}
	if !s.turns.all.Take(struct{}{}) {
		back()
		s.seldom.Info("message refused", "full", "addr", addr.String())
		retryAfter(w, time.Second)
		refuse(w, shape, http.StatusServiceUnavailable, "full", "The gateway is busy; try again in a moment.")
		return nil, false
	}
	return func() { s.turns.all.Give(struct{}{}); back() }, true
}

func refuseDraining(w http.ResponseWriter, shape errorShape) {
	retryAfter(w, 5*time.Second)
	refuse(w, shape, http.StatusServiceUnavailable, protocol.CodeDraining, "The gateway is shutting down; use another gateway.")
}

// share is the maximum of one address or one user.
type share struct {
	of               *quota.Quota[string]
	key              string
	whose            string // "address" or "user", for the log
	tooFast, tooMany string // error messages
}

// enter takes a slot of the share. If there is none, reason is set, and wait is the time to retry, or zero if a
// message must end first.
func (s share) enter() (wait time.Duration, reason, message string) {
	if wait := s.of.Begin(s.key); wait > 0 {
		return wait, s.whose + "_rate", s.tooFast
	}
	if !s.of.Take(s.key) {
		return 0, s.whose + "_limit", s.tooMany
	}
	return 0, "", ""
}
