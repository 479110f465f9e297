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
)

// TurnLimits limits the messages of text conversations. Zero fields mean their defaults.
type TurnLimits struct {
	AtOnce     int
	PerAddress int
	PerUser    int
	// NewPerSecond is the maximum that one address, and one user, may start.
	NewPerSecond   int
	ExemptLoopback bool
}

type turns struct {
	all            *quota.Quota[struct{}] // all together, under one key
	byAddr         *quota.Quota[string]
	byUser         *quota.Quota[string]
	exemptLoopback atomic.Bool
}

func (t *turns) limit(l TurnLimits) {
	perSecond := cmp.Or(l.NewPerSecond, setting.NewTurnsPerSecond)
	t.all.Limit(quota.Options{AtOnce: cmp.Or(l.AtOnce, setting.Turns)})
	t.byAddr.Limit(quota.Options{AtOnce: cmp.Or(l.PerAddress, setting.TurnsPerAddress), PerSecond: perSecond})
	t.byUser.Limit(quota.Options{AtOnce: cmp.Or(l.PerUser, setting.TurnsPerUser), PerSecond: perSecond})
	t.exemptLoopback.Store(l.ExemptLoopback)
}

// manyBehind reports whether many users may share an address: a trusted server's, or this machine's if exempt.
func (s *Server) manyBehind(r *http.Request, addr netip.Addr) bool {
	return isServer(auth.From(r.Context())) || s.turns.exemptLoopback.Load() && addr.IsLoopback()
}

// enterChat admits a turn; leave must then be called once.
func (s *Server) enterChat(w http.ResponseWriter, r *http.Request, who user.User) (leave func(), no *problem) {
	if no = s.shutOut(who, "You are temporarily blocked. Come back later."); no == nil {
		no = s.spent(w, r, who)
	}
	if no != nil {
		return nil, no
	}
	if s.opts.Sessions.Draining() {
		return nil, draining("use another gateway")
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
		wait, reason, message := want.of.Begin(want.key), "_rate", want.tooFast
		if wait == 0 {
			if want.of.Take(want.key) {
				taken++
				continue
			}
			reason, message = "_limit", want.tooMany
		}
		back()
		s.seldom.Info("message refused", want.whose+reason, "addr", addr.String())
		return nil, refusal(http.StatusTooManyRequests, "limit", message).after(max(wait, time.Second))
	}
	if !s.turns.all.Take(struct{}{}) {
		back()
		s.seldom.Info("message refused", "full", "addr", addr.String())
		return nil, refusal(http.StatusServiceUnavailable, "full",
			"The gateway is busy; try again in a moment.").after(time.Second)
	}
	return func() { s.turns.all.Give(struct{}{}); back() }, nil
}

type share struct {
	of               *quota.Quota[string]
	key              string
	whose            string // "address" or "user", for the log
	tooFast, tooMany string // error messages
}
