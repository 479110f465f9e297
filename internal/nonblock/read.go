package nonblock

import "sync"

// Room provides the buffer for ReadInto.
type Room interface {
	// Room returns a non-empty buffer, immediately before reading.
	Room() []byte
	// GiveBack takes the buffer back if there was nothing to read after all.
	GiveBack()
}

// Borrowed is a Room that takes 16 KiB from a pool only when there is something to read. Its zero value is ready for
// use.
type Borrowed struct{ block *[16 << 10]byte }

var blocks = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// Room implements Room. It returns the same buffer until GiveBack.
func (b *Borrowed) Room() []byte {
	if b.block == nil {
		b.block = blocks.Get().(*[16 << 10]byte)
	}
	return b.block[:]
}

// GiveBack implements Room.
func (b *Borrowed) GiveBack() {
	if b.block != nil {
		blocks.Put(b.block)
		b.block = nil
	}
}

// ReadInto waits until there is something to read, and only then asks for the buffer, so that an idle connection holds
// none; except that a connection that is not a socket of the operating system holds it while it waits. Only one
// goroutine may read at a time. Call it only before Notify.
func (c *Conn) ReadInto(room Room) (int, error) {
	if c.wait != nil {
		return c.wait(room)
	}
	return c.Conn.Read(room.Room())
}

// TryReadInto reads arrived data; without any it returns ErrWouldBlock. Call it only within a turn.
func (c *Conn) TryReadInto(room Room) (int, error) {
	n, err := c.ear.read(room.Room())
	if n <= 0 {
		room.GiveBack()
	}
	return n, err
}

// Read implements net.Conn. After Notify it does not wait, and may be called only within turns.
func (c *Conn) Read(p []byte) (int, error) {
	if c.ear != nil {
		return c.ear.read(p)
	}
	return c.Conn.Read(p)
}
