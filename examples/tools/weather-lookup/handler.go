// Package weatherlookup is the tool weather_lookup.
package weatherlookup

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"voicegw/registry"
)

// Needs are the capabilities that the tool uses, found by their types.
type Needs struct {
	Settings Settings
}

// Execute answers one call.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	settings := call.Needs.Settings
	ctx, cancel := context.WithTimeout(ctx, settings.Timeout)
	defer cancel()
	asked := url.Values{"city": {call.Args.City}, "days": {strconv.FormatInt(call.Args.Days, 10)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, settings.BaseURL+"/forecast?"+asked.Encode(), nil)
	if err != nil {
		return registry.Result{}, err // INTERNAL: the operator's address is wrong
	}
	request.Header.Set("Authorization", "Bearer "+settings.APIKey.Reveal())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		told := registry.Errorf(registry.ErrorTransient, "The weather service cannot be reached at the moment.")
		told.Err = err // for the log
		return registry.Result{}, told
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return registry.Result{}, registry.Errorf(registry.ErrorNotFound, "There is no place called %s.", call.Args.City)
	default:
		return registry.Result{}, registry.Errorf(registry.ErrorTransient, "The forecast is not available at the moment.")
	}
	var output Output
	if err := json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&output); err != nil {
		return registry.Result{}, registry.Errorf(registry.ErrorTransient, "The weather service does not answer as it should.")
	}
	return registry.Result{Data: output}, nil
}
