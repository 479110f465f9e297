package e2e

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"voicegw/sim/scenario"
)

// fullSize reports whether the run is as large as make chaos, where every random event is frequent.
func fullSize() bool {
	return *chaosSessions >= 200 && *chaosFor >= 3*time.Minute && *chaosGateways > 1
}

// missing names the kinds of random events that did not happen.
func (e *evidence) missing(faults map[scenario.FaultKind]int64) []string {
	happened := map[string]int{}
	must := func(what string, n int) { happened[what] += n }
	for _, one := range losses {
		must("a client that loses its connection: "+string(one.value), 0)
	}
	for _, one := range thefts {
		must("a client with "+string(one.value), 0)
	}
	for _, how := range []string{"resumed", "replayed"} {
		must("a new connection to a model, "+how, e.log.hows[how])
	}
	for _, reason := range []string{"expiring", "lost", "unanswered"} {
		must("a replaced connection to a model: "+reason, e.log.reasons()[reason])
	}
	for _, status := range []string{"completed", "interrupted", "failed"} {
		must("a turn that was "+status, 0)
	}
	for _, outcome := range []string{"approved", "denied", "expired"} {
		must("a question that was "+outcome, 0)
	}
	for _, kind := range []moodKind{moodSlow, moodRefuses, moodLoses} {
		must("a ledger that is or does: "+string(kind), e.moods.counts()[kind])
	}
	for _, kind := range chaosFaultKinds() {
		must("the fault "+kind, int(faults[scenario.FaultKind(kind)]))
	}
	for _, kind := range chaosKinds {
		for _, how := range hows {
			must(fmt.Sprintf("a run of a tool that writes, of the kind %s, with the result %s", kind, how), e.wrote(kind, how))
		}
	}
	must("a connection that had to be replaced although a call was open", e.withCalls())
	must("a call over OpenAI Live", e.tap.calls("live"))
	must("a delegation that outlived a connection", e.links.outlived())
	must("speech while a model's connection was replaced", e.understood)
	must("a planned replacement", e.planned)
	must("a client that resumes after the grace period", 0)
	must("a snapshot", 0)
	must("two tabs with one token", 0)
	must("a gateway that is killed", e.kills)
	must("a gateway that is drained", e.drains)
	must("a session that moves", e.moved)
	must("a session that is taken from a gateway that was killed", 0)
	must("a turn that the next gateway asks again", 0)
	for _, v := range e.visits {
		for how, n := range v.outages {
			must("a client that loses its connection: "+how, n)
		}
		for way, n := range v.gang.tried {
			must("a client with "+string(way), n)
		}
		for _, t := range v.turns {
			if t.status != "" {
				must("a turn that was "+t.status, 1)
			}
		}
		for _, outcome := range v.questions {
			if outcome != "" {
				must("a question that was "+outcome, 1)
			}
		}
		if !v.refusedAt.IsZero() {
			must("a client that resumes after the grace period", 1)
		}
		must("a snapshot", v.snapshots)
		must("two tabs with one token", v.twins)
		must("a turn that the next gateway asks again", v.again)
		must("a session that is taken from a gateway that was killed", min(v.taken, len(e.links.deaths(v.session))))
	}
	var missing []string
	for what, n := range happened {
		if n == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

// wrote counts the runs of tools of a kind that write, by their results.
func (e *evidence) wrote(kind chaosKind, how string) int {
	n := 0
	for _, r := range e.runs {
		if spec, _ := named(r.tool); spec.writes && spec.kind == kind && strings.Contains(r.args, `"how":"`+how+`"`) {
			n++
		}
	}
	return n
}

// withCalls counts the links that were replaced during a call.
func (e *evidence) withCalls() int {
	n := 0
	for _, all := range e.log.switched {
		for _, sw := range all {
			if sw.reason == "expiring" && sw.calls > 0 {
				n++
			}
		}
	}
	return n
}

func chaosFaultKinds() []string {
	var kinds []string
	for _, m := range regexp.MustCompile(`do: (\w+)`).FindAllStringSubmatch(chaosFaults(rand.New(rand.NewPCG(1, 1))), -1) {
		kinds = append(kinds, m[1])
	}
	return kinds
}
