package ws

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/coder/websocket"
)

// TestTheWatchTakesNoMemory: a Conn stays in the allocator's class of 352 bytes; the next one is 384.
func TestTheWatchTakesNoMemory(t *testing.T) {
	if size := unsafe.Sizeof(Conn{}); size > 352 {
		t.Errorf("a Conn takes %d bytes, and may take 352", size)
	}
}

// TestSlowIsNotLost: a connection whose pending bytes leave is alive although nothing comes. Once they stop
// leaving it is lost, and no call of KeepAlive has waited.
func TestSlowIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := Adopt(near, nil, Options{})
		defer c.CloseNow()
		piece := make([]byte, 100)
		write := func() {
			if err := c.Write(websocket.MessageBinary, piece); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		write()
		for i := range 40 {
			write() // waits behind the previous one
			if _, err := io.ReadFull(far, make([]byte, 2+len(piece))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !c.KeepAlive(5, 12) {
				t.Fatalf("the slow connection is lost after %d calls", i)
			}
		}
		for i := 1; i <= 12; i++ {
			if alive := c.KeepAlive(5, 12); alive != (i < 12) {
				t.Errorf("alive is %v after %d calls in which no byte moved", alive, i)
			}
		}
	})
}
