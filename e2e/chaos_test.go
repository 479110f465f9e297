package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"voicegw/internal/audit"
	"voicegw/sim"
	"voicegw/sim/scenario"
)

// The chaos test's default size; make chaos has a larger one.
var (
	chaosSessions = flag.Int("chaos.sessions", 20, "how many sessions of the chaos test run at once")
	chaosFor      = flag.Duration("chaos.for", 6*time.Second, "how long the chaos test lasts")
	chaosSeed     = flag.Uint64("chaos.seed", 0, "seed of the chaos test; 0 uses the clock")
	chaosGateways = flag.Int("chaos.gateways", 2, "how many gateways the chaos test has; of more than one, they are killed and drained")
	chaosWire     = flag.String("chaos.wire", "", "the only provider of the chaos test; empty means all")
	chaosSpeed    = flag.Float64("chaos.speed", 4, "seconds of speech that the model makes in a second")
)

// TestChaos lets callers talk to the gateway over all wires with every fault: the provider misbehaves, tools fail and
// hang, the ledger fails, callers hang up. Then it compares the observations of every side with the gateway's promises.
// The seed determines the callers' actions and the faults; their timing depends on the machine, so a repeated seed
// gives a similar run.
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	out := io.Writer(io.Discard)
	if testing.Verbose() {
		out = os.Stdout
	}
	before := goleak.IgnoreCurrent()
	fmt.Fprintf(out, "chaos: seed %d, %d sessions at once for %v\n", seed, *chaosSessions, *chaosFor)
	ch := newChaos(t, seed)
	gone := make(chan struct{}) // closed below, at the end
	var beating sync.WaitGroup
	beating.Go(func() { ch.pulse.run(gone) })
	writing := make(chan struct{}) // closed when the store is no longer needed
	beating.Go(func() {
		if err := ch.stored.run(writing, ch.nats.ClientURL()); err != nil {
			ch.broke("the pulse of the store: %v", err)
		}
	})
	ch.run(out)
	close(writing)
	found, faults := ch.close(), ch.sim.Stats().FaultsBy.All()
	found.report(out, faults)
	for _, broken := range append(ch.broken, found.check()...) {
		t.Errorf("seed %d: %s", seed, broken)
	}
	if found.unknown > 0 {
		fmt.Fprintf(out, "  lost: %d sessions that only the gateway knew which was killed, because the store was slow\n", found.unknown)
	}
	for _, what := range found.missing(faults) {
		fmt.Fprintf(out, "  did not happen: %s\n", what)
		if fullSize() {
			t.Errorf("seed %d: a run of this size must have had %s", seed, what)
		}
	}
	ch.stop()
	err := ch.leak(before)
	close(gone)
	beating.Wait()
	if err != nil {
		t.Errorf("seed %d: goroutines are left: %v", seed, err)
	}
	fmt.Fprintf(out, "chaos: seed %d, %s\n", seed, map[bool]string{false: "all promises held", true: "FAILED"}[t.Failed()])
}

// chaos is the test's state.
type chaos struct {
	t        *testing.T
	seed     uint64
	began    time.Time
	dir      string
	sim      *sim.Server
	tap      *wiretap
	side     *gatewaySide
	links    *linkSide
	toolFile []byte // the registry
	world    *counter
	nats     *server.Server // contains the store
	moods    *moods
	held     int // messages that a gateway stores for a client
	ends     []gatewayExit
	crowd    *crowd
	over     chan struct{} // closed by run when the time is over
	pulse    *pulse
	stored   *storePulse
	log      *lockedBuffer
	lives    *chaosLog
	buried   sync.WaitGroup // cleanup of dead gateways

	born int // gateways; owned by the goroutine that starts them

	mu     sync.Mutex // guards the following fields
	nodes  []*chaosNode
	turn   int // of the gateways, for connections
	kills  int
	drains int
	moved  int // sessions
	broken []string
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	ch := &chaos{
		t: t, seed: seed, began: time.Now(), over: make(chan struct{}), log: &lockedBuffer{}, pulse: &pulse{}, stored: &storePulse{}, dir: t.TempDir(),
		links: newLinkSide(), lives: newChaosLog(), toolFile: chaosToolFile(t),
		side: &gatewaySide{cancelled: map[string]time.Time{}, answering: map[string][]time.Time{}},
	}
	ch.world = newCounter(t.TempDir(), ch.broke)
	ch.openSim(rng)
	ch.openNATS()
	ch.moods = newMoods(chaosMoods(rng, *chaosFor))
	ch.held = 8 + rng.IntN(5) // less than a busy caller requested
	ch.ends = gatewayExits(rng, *chaosFor)
	for range *chaosGateways {
		if _, err := ch.newNode(); err != nil {
			t.Fatal(err)
		}
	}
	ch.crowd = newCrowd(ch)
	return ch
}

// openSim starts the provider behind the wiretap.
func (ch *chaos) openSim(rng *rand.Rand) {
	opts := sim.Options{Seed: rng.Uint64(), Speed: *chaosSpeed, FirstAudioMS: 50, ConnectionLife: between(rng, 6*time.Second, 20*time.Second)}
	var err error
	if opts.Scenario, err = scenario.Parse("chaos.yaml", []byte(chaosScenario())); err != nil {
		ch.t.Fatal(err)
	}
	if opts.Faults, err = scenario.ParseFaults("weather.yaml", []byte(chaosFaults(rng))); err != nil {
		ch.t.Fatal(err)
	}
	ch.sim = sim.New(opts)
	ch.tap = newWiretap(ch.t, ch.sim)
}

// run lets the callers call until the time is over, and reports progress.
func (ch *chaos) run(out io.Writer) {
	var callers sync.WaitGroup
	for n := range *chaosSessions {
		callers.Go(func() { ch.crowd.call(n) })
	}
	var director sync.WaitGroup
	if *chaosGateways > 1 {
		director.Go(ch.direct)
	}
	over := time.After(*chaosFor)
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for late := false; !late || ch.tooQuiet() != ""; {
		select {
		case <-over:
			late = true
		case <-look.C:
		case <-tick.C:
			ch.progress(out)
			if quiet := ch.tooQuiet(); late {
				fmt.Fprintf(out, "         its time is over, but it continues, because this run is not yet conclusive: %s\n", quiet)
			}
		}
	}
	close(ch.over)
	director.Wait()
	callers.Wait()
	ch.buried.Wait()
}

// running counts the sessions.
func (ch *chaos) running() int {
	n := 0
	for _, node := range ch.living() {
		n += node.manage.Running()
	}
	return n
}

// tell reports progress.
func (ch *chaos) progress(out io.Writer) {
	ch.crowd.mu.Lock()
	visits := len(ch.crowd.visits)
	ch.crowd.mu.Unlock()
	fmt.Fprintf(out, "  %4.0f s: %d sessions run, %d are over, %d calls, %d handlers begun, %d faults\n", time.Since(ch.began).Seconds(),
		ch.running(), visits, ch.sim.Stats().Calls.Load(), ch.world.begun(""), ch.sim.Stats().Faults.Load())
}

// leak looks for leftover goroutines, which may take a while to end.
func (ch *chaos) leak(before goleak.Option) error {
	for since := time.Now(); ; {
		// goleak itself retries for a second.
		err := goleak.Find(before, goleak.IgnoreAnyFunction("voicegw/e2e.(*pulse).run"))
		if err == nil || ch.pulse.between(since, time.Now()) > chaosPatience {
			return err
		}
	}
}

// close stops the writers and collects the evidence.
func (ch *chaos) close() *evidence {
	for since := time.Now(); ch.running() > 0; <-time.After(10 * time.Millisecond) {
		if ch.pulse.between(since, time.Now()) > chaosPatience {
			ch.broke("%d sessions run although all callers are gone", ch.running())
			break
		}
	}
	e := &evidence{
		visits: ch.crowd.visits, tap: ch.tap, side: ch.side, links: ch.links, log: ch.lives, moods: ch.moods, pulse: ch.pulse, stored: ch.stored,
		kills: ch.kills, drains: ch.drains, moved: ch.moved, held: ch.crowd.held,
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	living := ch.living()
	for _, n := range living {
		n.manage.Close()
	}
	for _, n := range living {
		n.retire()
	}
	for _, n := range ch.nodes {
		e.read(ctx, ch, n)
	}
	err := living[0].store.Audit.Read(ctx, time.Time{}, func(line []byte) error {
		r, err := audit.ParseLine(line)
		e.stream = append(e.stream, r)
		return err
	})
	if err != nil {
		ch.broke("reading the audit's stream: %v", err)
	}
	for _, n := range living {
		n.shut()
	}
	ch.world.close()
	e.runs = ch.world.all()
	e.settle()
	if ch.lives.hasLeaked() || strings.Contains(ch.log.String(), secret) {
		ch.broke("the provider's key is in the log")
	}
	return e
}

// read reads the file of a gateway's audit.
func (e *evidence) read(ctx context.Context, ch *chaos, n *chaosNode) {
	report, err := audit.ReadFiles(ctx, n.path, func(r audit.Record, _ []byte) error {
		e.file = append(e.file, r)
		return nil
	})
	if err != nil || report.Foreign+report.TooLong > 0 || report.Torn {
		ch.broke("reading the audit's file of %s: %+v, %v", n.name, report, err)
	}
}

func (ch *chaos) broke(format string, args ...any) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.broken = append(ch.broken, fmt.Sprintf(format, args...))
}

func (ch *chaos) stop() {
	_ = ch.crowd.door.Close() // it has no connections left
	ch.crowd.client.CloseIdleConnections()
	if err := ch.sim.Close(); err != nil {
		ch.t.Error("closing the simulator:", err)
	}
	ch.tap.close()
	ch.nats.Shutdown()
	ch.nats.WaitForShutdown()
}

// tooQuiet names necessary events that have not happened yet. On an idle machine they happen dozens of times in the
// smallest run; otherwise the run continues until they have.
func (ch *chaos) tooQuiet() string {
	completed, interrupted, repeats, returns, snapshots := 0, 0, 0, 0, 0
	ch.crowd.mu.Lock()
	for _, v := range ch.crowd.visits {
		returns, snapshots = returns+v.returns, snapshots+v.snapshots
		for _, turn := range v.turns {
			switch turn.status {
			case "completed":
				completed++
			case "interrupted":
				interrupted++
			}
		}
		for _, call := range v.tools {
			if call.ended != nil && call.ended.Deduplicated {
				repeats++
			}
		}
	}
	ch.crowd.mu.Unlock()
	for _, c := range []struct {
		what string
		n    int
	}{
		{"completed turns", completed}, {"interrupted turns", interrupted}, {"runs of tools in Go", ch.world.begun(kindGo)}, {"runs of HTTP tools", ch.world.begun(kindHTTP)},
		{"runs of MCP tools", ch.world.begun(kindMCP)}, {"runs of tools in JavaScript", ch.world.begun(kindJS)}, {"repeats", repeats},
		{"kinds of faults", len(ch.sim.Stats().FaultsBy.All())}, {"returns of callers", returns},
		{"connections to models that were replaced", ch.links.replaced()}, {"snapshots", snapshots},
		{"calls over OpenAI Live", ch.tap.calls("live")},
	} {
		if c.n < 3 {
			return fmt.Sprintf("there were %d %s", c.n, c.what)
		}
	}
	return ""
}
