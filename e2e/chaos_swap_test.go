package e2e

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"voicegw/protocol"
)

// maxGap is the largest gap in an item that a planned replacement may cause.
const maxGap = 300 * time.Millisecond

// gap is a time without audio in an item.
type gap struct {
	item     string
	from, to time.Time
}

// slowDial delays a new connection to a model, so that callers can speak during it.
func slowDial(visit string, n int) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, visit, n)
	rng := rand.New(rand.NewPCG(h.Sum64(), 17))
	if rng.IntN(2) == 0 {
		return 0
	}
	return between(rng, 20*time.Millisecond, 200*time.Millisecond)
}

// overtalk speaks during a replacement of the model's connection, if the caller has that habit.
func (v *visit) overtalk() {
	if !v.habits.overtalk || v.away || v.losing || v.leaving || v.session == "" {
		return
	}
	v.mention("%.3f I speak while the model's connection is replaced", time.Since(v.began).Seconds())
	v.overtalks = append(v.overtalks, time.Now())
	v.speak()
}

// plannedReplacements checks S9 and S10. A planned replacement is invisible unless it takes long, causes no audible gap
// and loses no speech. During a call, none begins before its deadline.
func (e *evidence) plannedReplacements(f *findings) {
	running := map[string][]*run{}
	for _, r := range e.runs {
		running[r.session] = append(running[r.session], r)
	}
	for _, v := range e.visits {
		links := e.links.of(v.voice()).byGen
		mayShow := map[string]int{}
		for _, sw := range e.log.switched[v.session] {
			if sw.gen%chaosLinksPerEpoch == 0 {
				mayShow[sw.reason]++ // another gateway had the connection
				if sw.reason == "taken_over" {
					mayShow["lost"]++ // the dying gateway may have reported the end of its own connection
				}
				continue
			}
			l, next := links[sw.gen], links[sw.gen+1]
			if l == nil {
				f.add("the log agrees with the wire", "link %d of %s was replaced, and was never opened", sw.gen, v.name())
				continue
			}
			forced := !l.by.IsZero() && !sw.at.Before(l.by)
			slow := next == nil || next.failed > 0 || next.opened.Sub(sw.at) > 400*time.Millisecond
			if sw.reason != "expiring" || slow {
				mayShow[sw.reason]++
			}
			if sw.reason != "expiring" || forced {
				continue
			}
			e.planned++
			for _, r := range running[v.session] {
				if spec, _ := named(r.tool); spec.cancel {
					continue // its handler may outlive its timeout
				}
				if r.at.Before(sw.at) && r.until().After(sw.at) {
					f.add("S10: no replacement while a call runs", "link %d of %s was replaced %v after %s had begun, %v before it had to be", sw.gen, v.name(),
						sw.at.Sub(r.at), r.tool, l.by.Sub(sw.at))
				}
			}
			for _, g := range v.gaps {
				// The end of the model's speech may arrive late on a slow machine.
				if l.cut && g.from.Before(sw.at) && g.to.After(sw.at) && e.pulse.between(g.from, g.to) > maxGap {
					f.add("S9: a planned replacement makes no gap", "link %d of %s was replaced, and no audio of %s arrived for %v", sw.gen, v.name(), g.item, g.to.Sub(g.from))
				}
			}
		}
		for reason, n := range v.reconnecting {
			if n > mayShow[reason] {
				f.add("S9: a planned replacement shows nothing", "%s got %d notices with the reason %s, and %d were necessary; the log has %+v, %s%s", v.name(), n, reason, mayShow[reason],
					e.log.switched[v.session], e.links.describe(v.session), v.lately())
			}
		}
		e.overtalked(f, v)
	}
}

// overtalked: speech during a replacement is transcribed, opens a turn, or is reported as failed. If the caller's own
// connection was lost, the speech may be lost too.
func (e *evidence) overtalked(f *findings, v *visit) {
	within := func(times []time.Time, from, to time.Time) bool {
		return slices.ContainsFunc(times, func(t time.Time) bool { return t.After(from) && t.Before(to) })
	}
	for _, at := range v.overtalks {
		switch {
		case within(v.understood, at, v.overAt):
			e.understood++
		case slices.ContainsFunc(v.turnAt, func(t time.Time) bool { return t.After(at) && !within(v.typedAt, at, t) }):
			e.understood++
		case within(v.lostTimes, at.Add(-time.Second), at.Add(3*time.Second)), e.pulse.between(at, v.overAt) < chaosPatience:
		default:
			f.add("S9: speech during a replacement is answered", "%s spoke at %.3f and %v later there was no effect\n\t%s", v.name(), at.Sub(v.began).Seconds(),
				v.overAt.Sub(at), strings.Join(v.latest, "\n\t"))
		}
	}
}

// refusals compares each refusal of a valid token with the end of the session.
func (e *evidence) refusals(f *findings) {
	const promise = "a client may resume"
	for _, v := range e.visits {
		if v.refusedAt.IsZero() || v.astray() {
			continue
		}
		end, over := e.log.ended[v.session]
		switch {
		case !over && (e.unwritten(v.session) || e.endUnlogged(v)):
			e.unknown++
		case !over || e.pulse.between(v.refusedAt, end.at) > endingTime:
			f.add(promise, "%s was refused with %d, and its session had not ended: %+v, %s\n\t%s", v.name(), v.code, end, e.links.describe(v.session), strings.Join(v.latest, "\n\t"))
		case end.reason == "client_gone" && v.refusedAt.Sub(v.losingAt) < chaosGrace:
			f.add(promise, "%s was refused with %d after %v, and %v is the grace; it ended at %.3f, %s\n\t%s", v.name(), v.code, v.refusedAt.Sub(v.losingAt), chaosGrace,
				end.at.Sub(v.began).Seconds(), e.links.describe(v.session), strings.Join(v.latest, "\n\t"))
		}
	}
}

// astray reports whether another tab that was lost at once may have displaced this one. This tab then gets a close code
// or, if its gateway ended first, a refusal of its token.
func (v *visit) astray() bool {
	switch v.code {
	case protocol.CloseResumedElsewhere:
		return !v.stray.IsZero()
	case protocol.CloseTicket:
		return !v.stray.IsZero() && v.strayStarts <= 0
	}
	return false
}

// unwritten reports whether a session was lost with a killed gateway that had announced this: the store was too slow
// for the session's record, and the client did not wait for it.
func (e *evidence) unwritten(session string) bool {
	at, said := e.log.unsafe[session]
	return said && e.abandoned(session) && e.stored.slowest(at.Add(-2*time.Second), at) > slowStore
}

// endUnlogged reports whether the gateway was killed after the client had been away for the grace period: the session
// ended, but its tools ran on, and the end has no log line.
func (e *evidence) endUnlogged(v *visit) bool {
	owner := e.links.owner(v.session)
	return owner != nil && owner.death().Sub(v.lostAt) >= chaosGrace
}

// endingTime limits the time from a session's end to its log line: its tools may run until the executor's timeout.
// Otherwise the session ends with its grace period.
const endingTime = chaosPatience
