package scenario

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

const (
	maxFaults    = 1000
	longestFault = 24 * time.Hour
	maxCount     = 1_000_000
)

// FaultScript is a fault script. It is immutable and safe for concurrent use. A nil FaultScript has no faults.
type FaultScript struct {
	rules []faultRule
}

// faultRule is an entry of a script. Zero values match anything.
type faultRule struct {
	at         string // a Where, or "time"
	n          int    // 0 is any
	turn       int    // 0 is any
	event      string // "" is any
	after      time.Duration
	connection int     // number of the connection
	api        string  // "" means any API
	chance     float64 // 0 is certain
	limit      int     // per connection; 0 means no limit
	jitter     time.Duration
	action     Fault
}

const atTime = "time"

var wheres = []string{
	string(AtConnect), string(AtSetup), string(AtTurn), string(AtChunk),
	string(AtCall), string(AtEvent), string(AtFrame), atTime,
}

var apis = []string{string(APIRealtime), string(APILive), string(APIOpenAILive), string(APIChat), string(APIEmbeddings),
	string(APIImages), string(APISpeech)}

var kinds = []string{
	string(Delay), string(Drop), string(Close), string(GoAway), string(Expire), string(DuplicateCall),
	string(LateCall), string(CancelCall), string(MissingID), string(UnknownEvent), string(Malformed),
	string(Silence), string(SlowRead), string(Quota), string(HTTPError),
	string(RefuseResume), string(Amnesia), string(Deaf), string(LateHandle), string(NoHandle), string(BusyHandle),
	string(NoAudio), string(Unplaced), string(Undelegated),
}

var kindKeys = []string{"do", "for", "jitter", "code", "reason", "repeat", "unknown"}

var faultKeys = append([]string{"at", "n", "turn", "event", "after", "connection", "api", "probability", "limit"}, kindKeys...)

// ParseFaults reads a fault script from YAML; docs/simulator.md lists every key. The error is a *strict.Error with all
// problems and their lines; name is the file's.
func ParseFaults(name string, data []byte) (*FaultScript, error) {
	r := strict.NewReader(name)
	s := &FaultScript{}
	if doc := r.Document(data); doc != nil {
		if top, ok := r.Map(doc, "a fault script", "faults"); ok {
			s.read(r, top)
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// Add returns a script with the faults of s, which may be nil, and one more from a command line: the keys of an
// entry, such as "at: turn, n: 2, do: deaf", or only a fault's word, which applies at the setup of every connection.
// The error is a *strict.Error under that name.
func (s *FaultScript) Add(name, text string) (*FaultScript, error) {
	r := strict.NewReader(name)
	text = strings.TrimSpace(text)
	if text != "" && !strings.Contains(text, ":") {
		text = "at: setup, do: " + text
	}
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "}"
	}
	more := &FaultScript{}
	if s != nil {
		more.rules = slices.Clone(s.rules)
	}
	if doc := r.Document([]byte(text)); doc != nil {
		if one, ok := readFaultRule(r, doc); ok {
			more.rules = append(more.rules, one)
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return more, nil
}

func (s *FaultScript) read(r *strict.Reader, top strict.Map) {
	list := top.Get("faults")
	if list == nil {
		r.Problem(top.Node, "the key faults is missing; it holds the list of faults")
		return
	}
	entries := r.List(list, "faults")
	if len(entries) > maxFaults {
		r.Problem(list, "there are %d faults; at most %d are allowed", len(entries), maxFaults)
		return
	}
	for _, n := range entries {
		if one, ok := readFaultRule(r, n); ok {
			s.rules = append(s.rules, one)
		}
	}
}

func readFaultRule(r *strict.Reader, n *yaml.Node) (faultRule, bool) {
	m, ok := r.Map(n, "a fault", faultKeys...)
	if !ok {
		return faultRule{}, false
	}
	out := faultRule{limit: 1}
	if at := m.Get("at"); at == nil {
		r.Problem(n, "the fault has no time or place: give it at: one of %s", strict.Join(wheres))
	} else if out.at, ok = r.Word(at, "at", wheres...); !ok {
		return faultRule{}, false
	}
	count := func(key string, into *int, lo int) {
		if v := m.Get(key); v != nil {
			*into, _ = r.Int(v, key, lo, maxCount)
		}
	}
	count("n", &out.n, 1)
	count("turn", &out.turn, 1)
	count("connection", &out.connection, 1)
	out.api, _ = r.Word(m.Get("api"), "api", apis...)
	out.event, _ = r.Text(m.Get("event"), "event")
	out.after, _ = r.Duration(m.Get("after"), "after", longestFault)
	if v := m.Get("probability"); v != nil {
		if out.chance, ok = r.Float(v, "probability", 0, 1); ok && out.chance == 0 {
			r.Problem(v, "probability 0 never happens; remove the fault or raise it")
		}
		out.limit = 0
	}
	count("limit", &out.limit, 0)
	out.fits(r, m)
	out.action, out.jitter = readFaultKeys(r, m)
	out.applies(r, m)
	return out, true
}

func (u *faultRule) applies(r *strict.Reader, m strict.Map) {
	kind := u.action.Kind
	if !kind.OfResumption() && !kind.OfLive() && kind != Deaf {
		return
	}
	if u.at == string(AtConnect) {
		r.Problem(m.Get("at"), "%s has no meaning at connect, where there is no session yet; use it with at: setup", kind)
	}
	switch {
	case u.api == "":
	case kind.OfLive() && u.api != string(APIOpenAILive):
		r.Problem(m.Get("api"), "%s is a fault of the API openai_live", kind)
	case kind.OfResumption() && u.api != string(APILive):
		r.Problem(m.Get("api"), "%s needs resumption handles, which only the API live has", kind)
	case !slices.Contains([]string{string(APIRealtime), string(APILive), string(APIOpenAILive)}, u.api):
		r.Problem(m.Get("api"), "%s is a fault of voice sessions: of the APIs realtime, live and openai_live", kind)
	}
}

// fits reports keys without a meaning at this point, because a fault that silently never happens is worse than an
// error.
func (u *faultRule) fits(r *strict.Reader, m strict.Map) {
	refuse := func(key string, places ...string) {
		if m.Has(key) && !slices.Contains(places, u.at) {
			r.Problem(m.Get(key), "%s has no meaning at %s; use it with at: %s", key, u.at, strict.Join(places))
		}
	}
	if u.at == "" {
		return
	}
	refuse("n", string(AtTurn), string(AtChunk), string(AtCall))
	refuse("turn", string(AtChunk), string(AtCall), string(AtEvent), string(AtFrame))
	refuse("event", string(AtEvent))
	refuse("after", atTime)
	if u.at == atTime && !m.Has("after") {
		r.Problem(m.Node, "at: time needs after, the time since the connection began")
	}
	if u.at == string(AtEvent) && !m.Has("event") {
		r.Problem(m.Node, "at: event needs event, the type of the event; at: frame is every frame")
	}
	if u.at == string(AtTurn) && m.Has("n") && m.Has("turn") {
		r.Problem(m.Get("turn"), "give n alone at: turn")
	}
}

// readFault reads a fault from another file, with the keys do, for, code, reason, repeat and unknown, or as a single
// word. Problems go to r.
func readFault(r *strict.Reader, n *yaml.Node) (Fault, bool) {
	if n.Kind == yaml.ScalarNode {
		word, ok := r.Word(n, "fault", kinds...)
		a := Fault{Kind: FaultKind(word)}
		return a, ok && a.complete(r, n, strict.Map{})
	}
	m, ok := r.Map(n, "fault", "do", "for", "code", "reason", "repeat", "unknown")
	if !ok {
		return Fault{}, false
	}
	a, _ := readFaultKeys(r, m)
	return a, a.Kind != ""
}

func readFaultKeys(r *strict.Reader, m strict.Map) (a Fault, jitter time.Duration) {
	do := m.Get("do")
	if do == nil {
		r.Problem(m.Node, "the fault has no action: give it do: one of %s", strict.Join(kinds))
		return Fault{}, 0
	}
	word, ok := r.Word(do, "do", kinds...)
	if !ok {
		return Fault{}, 0
	}
	a.Kind = FaultKind(word)
	a.For, _ = r.Duration(m.Get("for"), "for", longestFault)
	jitter, _ = r.Duration(m.Get("jitter"), "jitter", longestFault)
	if v := m.Get("code"); v != nil {
		if a.Kind == HTTPError {
			a.Code, _ = r.Int(v, "code (an HTTP status)", 400, 599)
		} else {
			a.Code, _ = readCode(r, v)
		}
	}
	a.Reason, _ = r.Text(m.Get("reason"), "reason")
	a.Times, _ = r.Int(m.Get("repeat"), "repeat", 1, 100)
	a.Event, _ = r.Text(m.Get("unknown"), "unknown")
	a.complete(r, m.Node, m)
	return a, jitter
}

// readCode reads a close code that may be sent (RFC 6455, 7.4).
func readCode(r *strict.Reader, n *yaml.Node) (int, bool) {
	code, ok := r.Int(n, "code", 1000, 4999)
	if ok && !sendable(code) {
		r.Problem(n, "code %d cannot be sent in a close frame: 1000 to 1003, 1007 to 1014 and 3000 to 4999 can; do: drop ends "+
			"a connection without one", code)
		return 0, false
	}
	return code, ok
}

func sendable(code int) bool {
	return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006 || code >= 3000 && code <= 4999
}

func (a *Fault) complete(r *strict.Reader, n *yaml.Node, m strict.Map) bool {
	timed := map[FaultKind]bool{Delay: true, GoAway: true, LateCall: true, CancelCall: true, Silence: true, SlowRead: true,
		HTTPError: true, LateHandle: true, NoAudio: true}
	useless := func(key string, fine bool) {
		if m.Has(key) && !fine {
			r.Problem(m.Get(key), "%s has no meaning for %s", key, a.Kind)
		}
	}
	useless("for", timed[a.Kind])
	useless("jitter", timed[a.Kind])
	useless("code", a.coded())
	useless("reason", a.coded())
	useless("repeat", a.Kind == DuplicateCall || a.Kind == Unplaced)
	useless("unknown", a.Kind == UnknownEvent)
	if !m.Has("for") && !m.Has("jitter") && (a.Kind == Delay || a.Kind == SlowRead || a.Kind == LateHandle) {
		r.Problem(n, "%s needs for, a time such as 500ms", a.Kind)
		return false
	}
	a.fill()
	return true
}

func (a *Fault) coded() bool {
	return a.Kind == Close || a.Kind == GoAway || a.Kind == Expire || a.Kind == HTTPError || a.Kind == RefuseResume
}

var defaultCodes = map[FaultKind]int{Close: 1011, HTTPError: 500, RefuseResume: 1008}

func (a *Fault) fill() {
	a.Code = cmp.Or(a.Code, defaultCodes[a.Kind])
	switch a.Kind {
	case DuplicateCall, Unplaced:
		a.Times = max(a.Times, 1)
	case UnknownEvent:
		a.Event = cmp.Or(a.Event, "sim.unknown")
	}
}
