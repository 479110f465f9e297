// Command go-client types one question to a gateway, and prints the transcript of the spoken answer.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"voicegw/client/voice"
	"voicegw/protocol"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: go-client ws://127.0.0.1:8080/v1/voice Who knows about fonts?")
	}
	url, question := os.Args[1], strings.Join(os.Args[2:], " ")
	dial := func(ctx context.Context) (voice.Conn, error) {
		return protocol.Dial(ctx, url, protocol.DialOptions{Key: os.Getenv("VOICEGW_API_KEY")})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := dial(ctx)
	if err != nil {
		log.Fatal(err)
	}
	c := voice.New(voice.Options{
		Start: protocol.Start{InputRate: 16000, OutputRate: 24000},
		Turns: []voice.Turn{{Act: voice.Type, WaitFor: voice.ForAnswer, Patience: 20 * time.Second}},
		Words: func(_, _, _ int) voice.Words { return voice.Words{Text: question} },
		Frame: 20 * time.Millisecond, Buffers: make([]time.Duration, 1),
		ConnectTime: 10 * time.Second, GoodbyeTime: 3 * time.Second, Patience: 20 * time.Second,
		Resume: voice.ResumeOptions{Within: 30 * time.Second, Random: rand.Float64}, // after a lost connection
	}, printer{}, time.Now())
	c.Run(ctx, voice.Link{Conn: conn, Dial: dial})
	if !c.Done() {
		log.Fatal("the conversation ended early")
	}
}

type printer struct{}

func (printer) Heard(_ time.Time, m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.Transcript:
		if m.Final {
			fmt.Printf("%s: %s\n", m.Role, m.Text)
		}
	case *protocol.ToolStarted:
		fmt.Println("tool:", m.Tool)
	case *protocol.Error:
		log.Print(m.Message)
	}
}

// HeardAudio gets the speech: PCM16, mono, 24 kHz. A program with a loudspeaker plays it.
func (printer) HeardAudio(time.Time, []byte, *voice.Item) {}
func (printer) Played(*voice.Item)                        {}
func (printer) Underrun(int, time.Duration)               {}

func (printer) Happened(_ time.Time, e voice.Event) {
	if e.Kind == voice.Failed || e.Kind == voice.Refused || e.Kind == voice.Lost {
		log.Print(e.Text, " ", e.Err)
	}
}
