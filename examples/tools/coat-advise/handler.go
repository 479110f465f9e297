// Package coatadvise is the tool coat_advise: it says whether to take a coat.
package coatadvise

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities that the tool uses.
type Needs struct {
	Tools registry.Tools
}

// Execute asks for the weather, and looks at the coldest day.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	var weather struct {
		Days []struct {
			Degrees float64 `json:"degrees"`
		} `json:"days"`
	}
	answer := call.Needs.Tools.Call(ctx, "weather_lookup", map[string]any{"city": call.Args.City})
	if err := answer.Into(&weather); err != nil {
		return registry.Result{}, err
	}
	if len(weather.Days) == 0 {
		return registry.Result{}, registry.Errorf(registry.ErrorNotFound, "There is no forecast for %s.", call.Args.City)
	}
	coldest := weather.Days[0].Degrees
	for _, day := range weather.Days {
		coldest = min(coldest, day.Degrees)
	}
	return registry.Result{Data: Output{Coat: coldest < 12, Coldest: coldest}}, nil
}
