package gemini_test

import (
	"context"
	"fmt"
	"time"

	"voicegw/transport"
	"voicegw/transport/gemini"
)

// A conversation with one typed question; the example counts the model's speech.
func Example() {
	model, err := gemini.New(transport.Provider{APIKey: "YOUR_API_KEY"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	conn, err := model.Connect(ctx, transport.Setup{Instructions: "Answer in one sentence."})
	if err != nil {
		fmt.Println("not connected, trying again may help:", transport.KindOf(err).Retryable())
		return
	}
	defer func() { _ = conn.Close() }()
	over := make(chan string, 1) // the final output, once
	heard := 0
	conn.Notify(func() {
		for {
			ev, err := conn.Recv()
			if err != nil {
				tell(over, err.Error())
				return
			}
			switch ev := ev.(type) {
			case nil:
				return // the next call of the function continues
			case *transport.AudioOut:
				heard += len(ev.PCM) / 2
			case transport.ResponseDone:
				tell(over, fmt.Sprint("seconds of speech: ", heard/conn.Info().OutputRate))
			}
		}
	})
	if err := conn.Send(context.Background(), transport.UserText{Text: "What is a gateway?"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-over)
}

// tell does not wait, because it is called in Notify's function.
func tell(over chan<- string, text string) {
	select {
	case over <- text:
	default:
	}
}

func ExampleNew() {
	_, err := gemini.New(transport.Provider{APIKey: "YOUR_API_KEY", BaseURL: "https://generativelanguage.googleapis.com/v1beta"})
	fmt.Println(err)
	// Output: gemini: invalid options: BaseURL has the path "/v1beta": leave it out, it is added automatically
}
