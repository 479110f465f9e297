// Package orderpack is the tool order_pack: it packs an order.
package orderpack

import (
	"context"
	"time"

	"voicegw/registry"
)

// Needs are the capabilities that the tool uses. There is a gallery in text alone.
type Needs struct {
	Messenger registry.Messenger
	Progress  registry.Progress
	Audit     registry.Audit
	Gallery   registry.Optional[registry.Gallery]
}

// Execute packs an order.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	if call.Session.Phase == "ending" {
		return registry.Result{}, registry.Errorf(registry.ErrorSessionInactive, "The call is ending; nothing was packed.")
	}
	needs := call.Needs
	needs.Progress.Tell("Looking for the parts", 0.2)
	if err := needs.Audit.Note("order.picked", map[string]int{"parts": 3}); err != nil {
		return registry.Result{}, err
	}
	output := Output{Order: call.Args.Order, PackedAt: call.Session.Now.UTC().Format(time.RFC3339),
		Parts: map[string]int64{"frame": 1, "wheel": 2}}
	if gallery, ok := needs.Gallery.Get(); ok {
		gallery.Show(registry.Image{ID: "label", URL: "/labels/" + call.Args.Order + ".png", Width: 400, Height: 200,
			ExpiresAt: call.Session.Now.Add(time.Hour)})
		output.Shown = new(true)
	}
	return registry.Result{Data: output}, needs.Messenger.Send("order.packed", map[string]string{"order": call.Args.Order})
}
