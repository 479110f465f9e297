package gemini_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/coder/websocket"

	"voicegw/sim/gemini"
	"voicegw/sim/wire"
)

// A client sets up a session; the simulator sends the provider's messages.
func ExampleNew() {
	ctx := context.Background()
	var group wire.Group
	srv := httptest.NewServer(gemini.New(wire.Options{Seed: 1, Group: &group}))
	defer srv.Close()
	defer group.Close(ctx)

	ws, _, err := websocket.Dial(ctx, srv.URL+
		"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=any", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ws.CloseNow()
	setup := `{"setup": {"model": "models/gemini-3.1-flash-live-preview"}}`
	if err := ws.Write(ctx, websocket.MessageText, []byte(setup)); err != nil {
		fmt.Println(err)
		return
	}
	kind, frame, err := ws.Read(ctx)
	fmt.Println(kind, err)
	fmt.Print(string(frame))
	// Output:
	// MessageBinary <nil>
	// {
	//   "setupComplete": {}
	// }
}
