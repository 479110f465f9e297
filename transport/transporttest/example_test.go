package transporttest_test

import (
	"context"
	"fmt"

	"voicegw/transport"
	"voicegw/transport/transporttest"
)

func ExampleNew() {
	model := transporttest.New(transport.Capabilities{Resume: true})
	model.Refuse(1, transporttest.Error("dial", transport.KindRetry))
	for {
		conn, err := model.Connect(context.Background(), transport.Setup{})
		if err != nil {
			fmt.Println(transport.KindOf(err))
			continue
		}
		_ = conn.Send(context.Background(), transport.UserText{Text: "hello"})
		_ = conn.Close()
		break
	}
	fmt.Println(model.Attempts(), model.Open())
	// Output:
	// retry
	// 2 0
}
