package session

import (
	"encoding/base64"
	"fmt"
	"testing"
	"testing/synctest"

	"voicegw/protocol"
	"voicegw/transport"
)

const pngStart = "\x89PNG\r\n\x1a\n"

func showImage(file string) string {
	return fmt.Sprintf(`{"type":"input.image","mime":"image/png","data":%q}`, base64.StdEncoding.EncodeToString([]byte(file)))
}

// TestImages: an image reaches a model that supports images, and begins no turn. Other models do not get it.
func TestImages(t *testing.T) {
	seeing := hearing
	seeing.Images = true
	for name, tc := range map[string]struct {
		caps transport.Capabilities
		says string
		err  string
	}{
		"a model with support":    {seeing, showImage(pngStart), ""},
		"a model without support": {hearing, showImage(pngStart), "not_available"},
		"no image":                {seeing, showImage("GIF89a"), "invalid_message"},
		"a large one":             {seeing, showImage(pngStart + string(make([]byte, protocol.MaxImageBytes))), "invalid_message"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, tc.caps, nil)
				c, model := st.started()
				c.say(tc.says)
				synctest.Wait()
				if sees := c.last(t, "session.started")["images"]; sees != (map[bool]any{true: true}[tc.caps.Images]) {
					t.Errorf("session.started says images: %v", sees)
				}
				if tc.err != "" {
					if e := c.last(t, "error"); e["code"] != tc.err || len(model.Commands()) != 0 {
						t.Errorf("the error is %v", e)
					}
					return
				}
				got, ok := model.NextControl(t).(transport.Image)
				if !ok || got.MIME != "image/png" || string(got.Data) != pngStart {
					t.Errorf("the model got %#v", got)
				}
				if c.count("turn.started") != 0 || c.count("error") != 0 {
					t.Errorf("the client got %v", c.log())
				}
			})
		})
	}
}

// TestNoImageWithoutAModel: without a connection to the model an image is dropped, and the client gets an error.
func TestNoImageWithoutAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seeing := remembering
		seeing.Images = true
		st := newStage(t, seeing, nil)
		c, model := st.started()
		synctest.Wait()
		release := st.fake.StallConnect()
		defer release()
		model.FailRecv(scriptedError("recv", transport.KindRetry))
		synctest.Wait()
		c.say(showImage(pngStart))
		synctest.Wait()
		if e := c.last(t, "error"); e["code"] != "unsent" || e["retryable"] != true {
			t.Errorf("the error is %v", e)
		}
	})
}
