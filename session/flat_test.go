package session

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"voicegw/registry"
	"voicegw/transport"
)

// TestOutagesLeaveNothing (S12): after the same conversation, a session with ten client and five model outages a turn
// holds exactly as much as one with few: in every list, map, buffer and goroutine.
func TestOutagesLeaveNothing(t *testing.T) {
	// Even few outages include each way to lose the model, so that both sessions hold the state of the latest loss.
	few, many := inventory(t, 1, 2), inventory(t, 10, 5)
	for path, n := range many {
		if n > few[path] {
			t.Errorf("%s has %d after many outages, and %d after few", path, n, few[path])
		}
	}
	if few["m.roster.sessions[].down.held"] == 0 || few["m.roster.sessions[].state.line"] == 0 || few["m.budget"] == 0 || few["goroutines"] == 0 {
		t.Errorf("the inventory misses known lists: %v", few)
	}
}

// inventory counts the elements held after a conversation with the given number of outages of each kind in each turn.
func inventory(t *testing.T, losses, rotations int) (counts map[string]int) {
	onStage(t, func(o *Options) {
		withGrace(o)
		o.Transports["fake"] = newFakeModel(remembering)
	}, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		r := tl.back(t, c)
		for turn := range 10 {
			item := fmt.Sprint("u", turn)
			tl.calls(model, item, "search", fmt.Sprintf(`{"to":"Ada %d"}`, turn))
			if turn == 4 {
				tl.asksToPay(r.conn, model, "pays") // never answered
			}
			half := speech(48*500, byte(turn))
			model.Emit(transport.ResponseStarted{ID: "s" + item}, &transport.AudioOut{Item: item, PCM: half})
			synctest.Wait()
			for n := range losses {
				r.read(n)
				r.outage(turn + n)
			}
			model.Emit(&transport.AudioOut{Item: item, PCM: half}, transport.AudioDone{Item: item},
				transport.ResponseDone{ID: "s" + item, Status: transport.ResponseCompleted})
			pass(20 * time.Second)
			for n := range rotations {
				model = tl.rotate(model, n)
			}
			r.read(-1)
			r.acknowledge()
		}
		pass(10 * time.Minute) // every deadline has passed
		r.read(-1)
		r.acknowledge()
		counts = elements(tl.m)
		counts["goroutines"] = bubbling()
		counts["connections to models"] = tl.fake.Open()
		for _, c := range r.left {
			if !c.isOver() {
				counts["connections of clients"]++
			}
		}
		r.conn.say(`{"type":"session.end"}`)
		synctest.Wait()
	})
	return counts
}

// bubbling counts the goroutines of the test's bubble.
func bubbling() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}

// outage disconnects the client in one of several ways, and resumes.
func (r *returning) outage(way int) {
	r.left = append(r.left, r.conn)
	switch way % 4 {
	case 0: // resumes with everything received
		r.lose()
		pass(time.Second)
		r.comeBack(r.position())
	case 1: // connects from another address
		r.comeBack(r.position())
	case 2: // the first answer is lost
		r.lose()
		r.comeBack(r.position())
		r.read(1)
		r.lose()
		r.comeBack(r.position())
	case 3: // has forgotten everything
		r.lose()
		r.highest = 0
		r.comeBack("")
	}
	r.read(1) // reads the token
}

// rotate replaces the model's connection, either as planned or after a failure.
func (tl *till) rotate(model *fakeConn, way int) *fakeConn {
	if way%2 == 0 {
		model.Emit(transport.GoAway{TimeLeft: 50 * time.Second})
	} else {
		model.FailRecv(broken())
	}
	next := tl.fake.Accept(tl.t)
	pass(2 * time.Minute)
	return next
}

// elements counts the elements of every list, map and buffer that a Manager holds, by path.
func elements(m *Manager) map[string]int {
	w := walk{counts: map[string]int{}, seen: map[visited]bool{}}
	w.value("m", reflect.ValueOf(m).Elem())
	w.value("m.budget", reflect.ValueOf(m.options().budget).Elem())
	return w.counts
}

// walk visits everything reachable, except values of the test and values shared by all sessions.
type walk struct {
	counts map[string]int
	seen   map[visited]bool
}

type visited struct {
	at unsafe.Pointer
	of reflect.Type
}

var leftOut = []reflect.Type{
	reflect.TypeFor[*slog.Logger](), reflect.TypeFor[*registry.Snapshot](), reflect.TypeFor[*fakeConn](), reflect.TypeFor[*testClient](),
	reflect.TypeFor[Options](), reflect.TypeFor[*Options](), reflect.TypeFor[*time.Timer](),
}

func (w *walk) value(path string, v reflect.Value) {
	if strings.HasPrefix(v.Type().String(), "atomic.Pointer[") {
		p := reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).MethodByName("Load").Call(nil)[0]
		w.value(path, p)
		return
	}
	for _, t := range leftOut {
		if v.Type() == t {
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || w.seen[visited{v.UnsafePointer(), v.Type()}] {
			return
		}
		w.seen[visited{v.UnsafePointer(), v.Type()}] = true
		w.counts[path]++
		w.value(path, v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			w.value(path, v.Elem())
		}
	case reflect.Struct:
		w.counts[path]++
		for i := range v.NumField() {
			w.value(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		w.counts[path] += v.Len()
		if k := v.Type().Elem().Kind(); k == reflect.Uint8 || k == reflect.Int16 {
			return
		}
		for i := range v.Len() {
			w.value(path+"[]", v.Index(i))
		}
	case reflect.Map:
		w.counts[path] += v.Len()
		for it := v.MapRange(); it.Next(); {
			w.value(path+"[]", addressable(it.Value()))
		}
	case reflect.Chan:
		w.counts[path] += v.Len()
	}
}

// addressable returns a copy with readable fields.
func addressable(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	if v.CanInterface() {
		c.Set(v)
		return c
	}
	return v
}

// peek returns an unexported number, or the length of an unexported list, of a struct of another package, under its
// lock mu.
func peek(of any, at string) int {
	v := reflect.ValueOf(of).Elem()
	if mu := v.FieldByName("mu"); mu.IsValid() {
		lock := (*sync.Mutex)(unsafe.Pointer(mu.UnsafeAddr()))
		lock.Lock()
		defer lock.Unlock()
	}
	for name := range strings.SplitSeq(at, ".") {
		v = v.FieldByName(name)
	}
	if v.CanInt() {
		return int(v.Int())
	}
	return v.Len()
}
