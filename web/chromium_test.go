package web

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// browser is one headless Chromium with one page, driven over the DevTools
// protocol (chromedevtools.github.io/devtools-protocol) through two pipes:
// JSON messages that end in a zero byte.
type browser struct {
	// Fixed after openBrowser.
	in      io.WriteCloser
	session string

	mu      sync.Mutex // guards the following fields
	lastID  int
	waiting map[int]chan reply
	// trouble is what the page complained about: exceptions, console errors,
	// violations of the policy, and requests to another host.
	trouble []string
	origin  string
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// openBrowser starts Chromium with a file as its microphone, or skips the
// test where there is none. It ends with the test.
func openBrowser(t *testing.T, microphone string, flags ...string) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes a while; not with -short")
	}
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no chromium is installed")
	}
	args := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--hide-scrollbars",
		"--use-fake-device-for-media-stream", "--use-file-for-fake-audio-capture=" + microphone,
		"--autoplay-policy=no-user-gesture-required", "--remote-debugging-pipe",
		"--user-data-dir=" + t.TempDir(),
	}, flags...)
	b := &browser{waiting: map[int]chan reply{}}
	b.start(t, exec.Command(program, append(args, "about:blank")...))
	b.attach(t)
	return b
}

// start runs Chromium, which reads commands from its descriptor 3 and writes
// to 4, until the test ends.
func (b *browser) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	theirIn, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	err = cmd.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	b.in = toBrowser
	var reader sync.WaitGroup
	reader.Go(func() { b.read(fromBrowser) })
	t.Cleanup(func() {
		// Closing its pipe ends Chromium in good order, as a rule.
		_ = toBrowser.Close()
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		_ = fromBrowser.SetReadDeadline(time.Now())
		reader.Wait()
		_ = fromBrowser.Close()
	})
}

func (b *browser) attach(t *testing.T) {
	t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	b.call(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.call(t, "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached)
	b.session = attached.Session
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(t, domain+".enable", nil, nil)
	}
}

// read takes what Chromium says until its pipe closes.
func (b *browser) read(from io.Reader) {
	messages := bufio.NewReaderSize(from, 1<<20)
	for {
		data, err := messages.ReadBytes(0)
		if err != nil {
			break
		}
		var message struct {
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			reply
		}
		if json.Unmarshal(data[:len(data)-1], &message) != nil {
			continue
		}
		b.mu.Lock()
		if message.ID != 0 {
			// Capacity 1, one reply per id: this never blocks.
			b.waiting[message.ID] <- message.reply
			delete(b.waiting, message.ID)
		} else {
			b.note(message.Method, message.Params)
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiter := range b.waiting {
		close(waiter)
	}
	b.waiting = nil
}

// note remembers an event that means trouble. mu is held.
func (b *browser) note(method string, params json.RawMessage) {
	switch method {
	case "Runtime.exceptionThrown", "Log.entryAdded":
		b.trouble = append(b.trouble, method+" "+string(params))
	case "Runtime.consoleAPICalled":
		var console struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(params, &console) == nil && console.Type != "log" {
			b.trouble = append(b.trouble, method+" "+string(params))
		}
	case "Network.requestWillBeSent":
		var sent struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if json.Unmarshal(params, &sent) == nil && b.origin != "" &&
			!hasOrigin(sent.Request.URL, b.origin) {
			b.trouble = append(b.trouble, "request to "+sent.Request.URL)
		}
	}
}

func hasOrigin(url, origin string) bool {
	return len(url) > len(origin) && url[:len(origin)+1] == origin+"/"
}

// noTrouble fails the test if the page complained about anything.
func (b *browser) noTrouble(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.trouble {
		t.Errorf("the page is not quiet: %s", trouble)
	}
}

var errBrowserGone = errors.New("the browser is gone")

func (b *browser) do(ctx context.Context, method string, params, result any) error {
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return errBrowserGone
	}
	b.lastID++
	id := b.lastID
	waiter := make(chan reply, 1) // from read, to this call
	b.waiting[id] = waiter
	b.mu.Unlock()
	command := map[string]any{"id": id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	data, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(data, 0)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer, ok := <-waiter:
		if !ok {
			return errBrowserGone
		}
		if answer.Error != nil {
			return errors.New(answer.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	}
}

// call sends one command and decodes its result, unless that is nil.
func (b *browser) call(t *testing.T, method string, params, result any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.do(ctx, method, params, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// open shows a page of the origin, with the scripts run before its own.
func (b *browser) open(t *testing.T, origin string, scripts ...string) {
	t.Helper()
	b.mu.Lock()
	b.origin = origin
	b.mu.Unlock()
	for _, script := range scripts {
		b.call(t, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
	}
	b.call(t, "Page.navigate", map[string]any{"url": origin + "/"}, nil)
	b.until(t, `document.readyState === "complete" && document.querySelector("#start") !== null`)
}

// eval runs an expression as if the user had just clicked and decodes its
// value, which may be a promise's.
func (b *browser) eval(t *testing.T, expression string, value any) {
	t.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.call(t, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &answer)
	if answer.Exception != nil {
		t.Fatalf("%s: %s", expression, answer.Exception)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

// until waits for a condition on the page's document.
func (b *browser) until(t *testing.T, condition string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	expression := fmt.Sprintf(`new Promise((done) => {
		const check = () => { if (%s) { watch.disconnect(); done(true); } };
		const watch = new MutationObserver(check);
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		document.addEventListener("readystatechange", check);
		check();
	})`, condition)
	err := b.do(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true}, nil)
	if err != nil {
		var text string
		b.eval(t, "document.body.innerText", &text)
		t.Fatalf("waiting for %s: %v; the page shows:\n%s", condition, err, text)
	}
}

// shoot writes a picture of the page to the folder of -screenshots.
func (b *browser) shoot(t *testing.T, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	var picture struct {
		Data string `json:"data"`
	}
	b.call(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// look sets the window's size in CSS pixels and the colour scheme.
func (b *browser) look(t *testing.T, width, height int, scheme string) {
	t.Helper()
	b.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	b.call(t, "Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

// click presses and releases the left mouse button in the middle of an element, once
// it can be pressed.
func (b *browser) click(t *testing.T, element string) {
	t.Helper()
	b.until(t, "("+element+")?.disabled === false")
	var at struct{ X, Y float64 }
	b.eval(t, `(() => { const box = (`+element+`).getBoundingClientRect();
		return {x: box.x + box.width / 2, y: box.y + box.height / 2}; })()`, &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call(t, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// key presses and releases a key, as a person would.
func (b *browser) key(t *testing.T, name string) {
	t.Helper()
	down := map[string]any{"type": "keyDown", "key": name, "code": name}
	if name == "Enter" {
		down["text"] = "\r"
		down["windowsVirtualKeyCode"] = 13
	}
	if name == "Tab" {
		down["windowsVirtualKeyCode"] = 9
	}
	b.call(t, "Input.dispatchKeyEvent", down, nil)
	b.call(t, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "code": name}, nil)
}
